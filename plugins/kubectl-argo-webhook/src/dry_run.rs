//! Describes the request instead of sending it.

use http::HeaderMap;
use kit::{cluster::Cluster, error::Error, talk::Talk};
use serde_json::{Map, Value, json};

use crate::{args::Send, diagnosis, provider::Provider, route::Route, trust};

/// The file that the curl line reads the certificate from.
const CERTIFICATE_FILE: &str = "argocd-server.crt";

/// The request, the curl line that makes it, and what must be done before that line works. No secret is in it: a
/// signature does not tell the key, and a token is read from its file.
///
/// # Errors
/// When the Secret with the server's certificate cannot be found out.
pub async fn describe(
    args: &Send,
    headers: &HeaderMap,
    route: &Route,
    cluster: Option<&Cluster>,
    talk: &Talk,
) -> Result<Map<String, Value>, Error> {
    let provider = args.event.provider;
    let secret = diagnosis::header(provider);
    let is_secret = |name: &str| args.sign && !provider.has_hmac() && name.eq_ignore_ascii_case(secret);
    let shown = |name: &str, value: &http::HeaderValue| match is_secret(name) {
        true => "(the key)".to_owned(),
        false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
    };
    let listed: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.to_string(), shown(name.as_str(), value).into())).collect();

    let mut words = vec!["curl".to_owned(), "-sS".into(), "-i".into(), "-X".into(), "POST".into()];
    for (name, value) in headers.iter().filter(|(name, _)| !is_secret(name.as_str())) {
        words.extend(["-H".into(), quoted(&format!("{name}: {}", shown(name.as_str(), value)))]);
    }
    let key_pipe = (args.sign && !provider.has_hmac()).then(|| {
        words.extend(["-H".into(), "@-".into()]);
        key_pipe(args, provider)
    });
    let body = args.save_body.as_ref().or(args.event.body_file.as_ref());
    match body {
        Some(path) => words.extend(["--data-binary".into(), quoted(&format!("@{}", path.display()))]),
        None => {
            talk.say("the curl line reads the body from body.json: --save-body body.json writes it");
            words.extend(["--data-binary".into(), "@body.json".into()]);
        }
    }
    let prepare = target(args, route, cluster, &mut words).await?;
    let curl = format!("{}{}", key_pipe.unwrap_or_default(), words.join(" "));
    let mut object = Map::new();
    object.insert("method".into(), "POST".into());
    object.insert("headers".into(), json!(listed));
    object.insert("prepare".into(), prepare.into());
    object.insert("curl".into(), curl.into());
    object.insert("outcome".into(), "dry-run".into());
    Ok(object)
}

/// Adds the address, and says what must be done first.
async fn target(
    args: &Send,
    route: &Route,
    cluster: Option<&Cluster>,
    words: &mut Vec<String>,
) -> Result<Option<String>, Error> {
    if args.insecure_skip_tls_verify {
        words.push("--insecure".into());
    } else if let Some(file) = &args.ca_file {
        words.extend(["--cacert".into(), quoted(&file.display().to_string())]);
    }
    let own_trust = args.insecure_skip_tls_verify || args.ca_file.is_some();
    match route {
        Route::Direct(direct) => {
            let mut prepare = None;
            if let (Some(address), Some(cluster)) = (direct.resolved(), cluster) {
                words.extend(["--noproxy".into(), "'*'".into(), "--resolve".into(), address]);
                if direct.url.starts_with("https:") && !own_trust {
                    words.extend(["--cacert".into(), CERTIFICATE_FILE.into()]);
                    prepare = Some(write_certificate(args, cluster).await?);
                }
            }
            words.push(quoted(&direct.url));
            Ok(prepare)
        }
        Route::ServiceProxy { path, .. } => {
            words.push(quoted(&format!("http://127.0.0.1:8001{path}")));
            Ok(Some(format!("{} proxy --port 8001 &", kubectl(args))))
        }
        Route::PortForward(to) => {
            let forward =
                format!("{} port-forward -n {} pod/{} 8443:{} &", kubectl(args), to.cluster.namespace, to.pod, to.port);
            let host = format!("argocd-server.{}.svc", to.cluster.namespace);
            words.extend(["--noproxy".into(), "'*'".into(), "--resolve".into(), format!("{host}:8443:127.0.0.1")]);
            if to.tls.is_none() {
                words.push(quoted(&format!("http://{host}:8443{}", to.path)));
                return Ok(Some(forward));
            }
            words.push(quoted(&format!("https://{host}:8443{}", to.path)));
            if own_trust {
                return Ok(Some(forward));
            }
            words.extend(["--cacert".into(), CERTIFICATE_FILE.into()]);
            Ok(Some(format!("{}; {forward}", write_certificate(args, &to.cluster).await?)))
        }
    }
}

async fn write_certificate(args: &Send, cluster: &Cluster) -> Result<String, Error> {
    let (secret, _) = trust::certificate_of(cluster).await?;
    Ok(format!(
        "{} get secret -n {} {secret} -o jsonpath='{{.data.tls\\.crt}}' | base64 -d > {CERTIFICATE_FILE}",
        kubectl(args),
        cluster.namespace
    ))
}

/// The key goes from its file through a pipe: what stands on a command line can be read by everybody on the machine.
fn key_pipe(args: &Send, provider: Provider) -> String {
    let read = match (&args.secret_file, &args.secret_env) {
        (Some(path), _) => format!("cat {}", quoted(&path.display().to_string())),
        (None, Some(name)) => format!("printenv {}", quoted(name)),
        (None, None) => {
            let of_key = |key: &str| {
                format!(
                    "{} get secret -n {} argocd-secret -o jsonpath='{{.data.{}}}' | base64 -d",
                    kubectl(args),
                    quoted(&args.cluster.namespace),
                    key.replace('.', "\\.")
                )
            };
            provider.secret_keys().iter().map(|key| of_key(key)).collect::<Vec<_>>().join("; printf :; ")
        }
    };
    match provider {
        Provider::Azuredevops => {
            format!("printf 'Authorization: Basic %s\\n' \"$(printf %s \"$({read})\" | base64 -w 0)\" | ")
        }
        other => format!("printf '{}: %s\\n' \"$({read})\" | ", diagnosis::header(other)),
    }
}

fn kubectl(args: &Send) -> String {
    let mut words = vec!["kubectl".to_owned()];
    if let Some(path) = &args.cluster.kubeconfig {
        words.extend(["--kubeconfig".into(), quoted(&path.display().to_string())]);
    }
    if let Some(context) = &args.cluster.context {
        words.extend(["--context".into(), quoted(context)]);
    }
    words.join(" ")
}

/// As one word of a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word_in_a_shell() {
        for (text, word) in
            [("a/b.json", "a/b.json"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$(x)", "'$(x)'"), ("", "''")]
        {
            assert_eq!(quoted(text), word);
        }
    }
}
