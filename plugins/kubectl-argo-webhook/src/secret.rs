//! Looks at the key in `argocd-secret`, and sets it.

use std::{collections::BTreeMap, time::Instant};

use base64::{Engine, prelude::BASE64_STANDARD};
use k8s_openapi::api::core::v1::Secret;
use kit::{
    cluster::{Ask, Cluster},
    command::{Context, Report, interrupted},
    error::Error,
    exit::Exit,
    file::{self, Mode},
    talk::Talk,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Map, Value, json};

use crate::{
    args::{SecretSet, SecretShow},
    key::{self, ARGOCD_SECRET, Data, Key, Reference},
    probe::Prober,
    provider::Provider,
    random, signature,
};

/// Prints what is known about the key without giving it away.
///
/// # Errors
/// When the Secret cannot be read.
pub async fn show(args: SecretShow, context: Context) -> Result<Report, Error> {
    let cluster = args.cluster.connect(&context.talk).await?;
    let data = existing(&cluster).await?;
    let mut object = describe(args.provider, &cluster);
    let mut keys = Vec::new();
    let mut missing = Vec::new();
    for name in args.provider.secret_keys() {
        let value = match data.get(*name) {
            Some(value) => key::resolve(&cluster, value, &data, &context.talk).await?,
            None => Vec::new(),
        };
        if value.is_empty() {
            missing.push(*name);
        }
        keys.push(json!({
            "key": name,
            "set": data.contains_key(*name),
            "bytes": value.len(),
            "sha256_prefix": prefix(&value),
            "reference": data.get(*name).is_some_and(|stored| *stored != value),
            "doubt": key::doubt(&value),
            "near_misses": key::near_misses(name, &data),
        }));
    }
    object.insert("keys".into(), keys.into());
    object.insert("outcome".into(), if missing.is_empty() { "set" } else { "missing" }.into());
    if missing.is_empty() {
        return Ok(Report::done(object));
    }
    let error = Error::no(
        "no-key",
        format!(
            "no {} in {}/{ARGOCD_SECRET}: events of {} are accepted without being checked",
            missing.join(" and no "),
            cluster.namespace,
            args.provider.title()
        ),
    );
    Ok(Report::failed(object, error.hint("`kubectl argo-webhook secret set --generate` makes one")))
}

/// Writes the key, and waits until every server enforces it; puts the old one back when one does not in time.
///
/// # Errors
/// Before anything was changed; afterwards the report holds the error.
pub async fn set(args: SecretSet, context: Context) -> Result<Report, Error> {
    let talk = &context.talk;
    let new = new_key(&args, talk)?;
    let cluster = args.cluster.connect(talk).await?;
    let data = existing(&cluster).await?;
    let places = places(&args, &cluster, &data, &new, talk).await?;
    // Whatever stands in the way of asking the servers should show before anything is changed.
    let mut prober = Prober::start(args.provider, &new, &cluster, talk).await?;
    let old_file = match &args.out {
        Some(path) => {
            let old = std::fs::read(path).ok();
            file::write(path, &new.0, Mode::Secret)?;
            Some((path, old))
        }
        None => None,
    };
    let put_file_back = || match &old_file {
        Some((path, Some(old))) => file::write(path, old, Mode::Secret),
        Some((path, None)) => std::fs::remove_file(path)
            .map_err(|error| Error::usage("cannot-write", format!("cannot remove {}: {error}", path.display()))),
        None => Ok(()),
    };
    for place in places.iter().filter(|place| place.old.as_ref() != Some(&place.new)) {
        if let Err(error) = write(&cluster, place, Some(&place.new)).await {
            put_file_back()?;
            return Err(error);
        }
    }
    if args.provider == Provider::Azuredevops {
        talk.say(format!(
            "argocd-server reads these two keys only when it starts: kubectl rollout restart deployment argocd-server -n {}",
            cluster.namespace
        ));
    }

    let clock = Instant::now();
    let waited = tokio::select! {
        waited = prober.until_enforced(args.timeout) => waited,
        exit = context.interrupt.wait() => Err(interrupted(exit)),
    };
    let mut object = describe(args.provider, &cluster);
    object.insert("keys".into(), places.iter().map(Place::to_json).collect());
    object.insert("out".into(), args.out.as_ref().map(|path| path.display().to_string()).into());
    object.insert("pods".into(), prober.to_json());
    object.insert("waited_ms".into(), u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX).into());
    let error = match waited {
        Ok(()) => {
            object.insert("outcome".into(), "enforced".into());
            return Ok(Report::done(object));
        }
        Err(error) => error,
    };
    if matches!(error.exit, Exit::Interrupted | Exit::Terminated) {
        // The key is written; running the command again finishes the job.
        object.insert("outcome".into(), "interrupted".into());
        return Ok(Report::failed(object, error));
    }
    talk.warn("the new key is not enforced everywhere: putting the old one back");
    let mut failed = None;
    for place in places.iter().filter(|place| place.old.as_ref() != Some(&place.new)) {
        if let Err(error) = write(&cluster, place, place.old.as_deref()).await {
            failed = Some(error);
        }
    }
    put_file_back()?;
    object.insert("outcome".into(), if failed.is_none() { "put-back" } else { "not-enforced" }.into());
    if let Some(failed) = failed {
        talk.warn(format!("the old key could not be put back: {failed}"));
    }
    Ok(Report::failed(object, error))
}

/// Where one value of a key is kept.
struct Place {
    secret: String,
    key: String,
    old: Option<Vec<u8>>,
    new: Vec<u8>,
}

impl Place {
    fn to_json(&self) -> Value {
        json!({
            "secret": self.secret,
            "key": self.key,
            "bytes": self.new.len(),
            "sha256_prefix": prefix(&self.new),
            "changed": self.old.as_ref() != Some(&self.new),
        })
    }
}

fn new_key(args: &SecretSet, talk: &Talk) -> Result<Key, Error> {
    let key = match (&args.from_file, args.provider) {
        (Some(path), _) => key::from_file(path, talk)?,
        (None, Provider::Bitbucket) => {
            return Err(Error::usage("no-key", "the key of bitbucket is the UUID that Bitbucket gave to the hook")
                .hint("write the UUID, with its braces, into a file for --from-file"));
        }
        (None, Provider::Azuredevops) => Key(format!("argo-evt:{}", random::key()?).into_bytes()),
        (None, _) => Key(random::key()?.into_bytes()),
    };
    if args.provider == Provider::Azuredevops && !key.0.contains(&b':') {
        return Err(Error::usage("bad-key", "the key of azuredevops is a user name, a colon and a password")
            .hint("write user:password into the file"));
    }
    if key::reference(&key.0) != Reference::Literal {
        talk.warn("the new key begins with $: where a key of that name exists, the server takes that one instead");
    }
    Ok(key)
}

/// Where the values go: into `argocd-secret`, or to where a reference in it leads.
async fn places(args: &SecretSet, cluster: &Cluster, data: &Data, new: &Key, talk: &Talk) -> Result<Vec<Place>, Error> {
    let names = args.provider.secret_keys();
    let values: Vec<&[u8]> = match names {
        [_] => vec![&new.0],
        _ => new.0.splitn(2, |byte| *byte == b':').collect(),
    };
    let mut places = Vec::new();
    for (name, value) in names.iter().zip(values) {
        let near = key::near_misses(name, data);
        if !near.is_empty() {
            talk.warn(format!("{ARGOCD_SECRET} also has {}, which the server does not read", near.join(", ")));
        }
        let stored = data.get(*name);
        let own =
            Place { secret: ARGOCD_SECRET.into(), key: (*name).into(), old: stored.cloned(), new: value.to_vec() };
        places.push(match stored.map(|stored| key::reference(stored)) {
            Some(Reference::Own(key)) if !args.force && data.contains_key(key) => {
                Place { key: key.into(), old: data.get(key).cloned(), ..own }
            }
            Some(Reference::Other(secret, key)) if !args.force => {
                let found = key::read(cluster, secret).await?.filter(|found| found.is_part_of_argocd);
                match found.and_then(|mut found| found.data.remove(key)) {
                    Some(old) => Place { secret: secret.into(), key: key.into(), old: Some(old), ..own },
                    None => {
                        return Err(Error::usage(
                            "unresolved-reference",
                            format!("{name} of {ARGOCD_SECRET} looks like a reference, and leads nowhere"),
                        )
                        .hint(
                            "create the Secret (label app.kubernetes.io/part-of: argocd) and its key, or replace the \
                             reference by the key itself with --force",
                        ));
                    }
                }
            }
            _ => own,
        });
    }
    for place in places.iter().filter(|place| place.secret != ARGOCD_SECRET || !names.contains(&place.key.as_str())) {
        talk.say(format!("following the reference: the key is kept in {} of the Secret {}", place.key, place.secret));
    }
    Ok(places)
}

async fn existing(cluster: &Cluster) -> Result<Data, Error> {
    let found = key::read(cluster, ARGOCD_SECRET).await?;
    found.map(|found| found.data).ok_or_else(|| {
        Error::usage(
            "not-found",
            format!("no Secret {ARGOCD_SECRET} in namespace {} (context {})", cluster.namespace, cluster.context),
        )
        .hint("-n names Argo CD's namespace")
    })
}

/// A merge patch leaves every other key as it is; a null removes the key.
async fn write(cluster: &Cluster, place: &Place, value: Option<&[u8]>) -> Result<(), Error> {
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let ask = Ask { verb: "patch", resource: "secrets", namespace: &cluster.namespace, name: &place.secret };
    let data: BTreeMap<&str, Option<String>> =
        [(place.key.as_str(), value.map(|value| BASE64_STANDARD.encode(value)))].into();
    let patch = Patch::Merge(json!({"data": data}));
    cluster.call(ask, api.patch(&place.secret, &PatchParams::default(), &patch)).await?;
    Ok(())
}

fn describe(provider: Provider, cluster: &Cluster) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("provider".into(), provider.name().into());
    object.insert("namespace".into(), cluster.namespace.clone().into());
    object
}

/// Enough to compare two keys by, and nothing to guess one from.
fn prefix(value: &[u8]) -> Option<String> {
    (!value.is_empty()).then(|| signature::sha256(value)[..8].to_owned())
}
