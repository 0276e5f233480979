//! From the arguments to the job: everything that is refused is refused here, before anything is changed.

use kit::{
    cluster::Cluster,
    command::{Context, Report, interrupted},
    error::Error,
    file,
    moment::Moment,
    version::Version,
};

use crate::{
    args::Args,
    deadline::Deadline,
    expected::Expected,
    install::Install,
    job::{Done, Job},
    line_out, observe,
    origin::{JITTER, PERIOD},
    output,
    plan::{Change, Settings},
    preflight, restore, targets, wanted, warnings,
    workload::Component,
};

/// What the user asks of the settings.
struct Asked {
    settings: Settings,
    /// The old values to put back instead.
    restore: Option<[Option<String>; 2]>,
}

/// Looks at everything, refuses what cannot work, then does it.
///
/// # Errors
/// When nothing was begun.
pub async fn run(args: Args, context: Context) -> Result<Report, Error> {
    let started = Moment::now();
    let asked = Asked {
        settings: Settings {
            period: args.period.as_deref().map(wanted::period).transpose()?,
            jitter: args.jitter.as_deref().map(wanted::jitter).transpose()?,
        },
        restore: match &args.restore {
            Some(path) => Some(restore::parse(&file::read(path)?, &path.display().to_string())?),
            None => None,
        },
    };
    if let Some(path) = &args.line_out {
        line_out::check(path)?;
    }
    let cluster = args.cluster.connect(&context.talk).await?;
    let prepared = tokio::select! {
        biased;
        prepared = prepare(&args, &cluster, asked, started, &context) => prepared,
        exit = context.interrupt.wait() => return Err(interrupted(exit)),
    };
    let mut job = prepared?;
    if args.dry_run {
        return Ok(output::dry_run(&job));
    }
    let result = tokio::select! {
        biased;
        result = job.run() => result,
        exit = context.interrupt.wait() => Err(interrupted(exit)),
    };
    Ok(output::report(&job, result))
}

async fn prepare<'a>(
    args: &'a Args,
    cluster: &'a Cluster,
    asked: Asked,
    started: Moment,
    context: &'a Context,
) -> Result<Job<'a>, Error> {
    let deadline = Deadline::new(args.timeout);
    let mut install = Install::read(cluster, args.controller.as_deref(), args.repo_server.as_deref()).await?;
    let guess = install.version.unwrap_or(Version::NEWEST);
    let mut controllers = observe::controllers(cluster, &install, guess, false).await?;
    if install.version.is_none() {
        install.version = controllers.iter().find_map(|pod| pod.version);
    }
    let version = install.version.unwrap_or(guess);
    if version != guess {
        controllers = observe::controllers(cluster, &install, version, false).await?;
    }
    let (settings, mut notes) = match asked.restore {
        Some(values) => restore::settings(version, values),
        None => (asked.settings, Vec::new()),
    };
    let settings = preflight::known_to(version, settings)?;
    let change = Change::new(install.value(PERIOD.key), install.value(JITTER.key), &settings);
    let expected = Expected::new(version, change.period.after.as_deref(), change.jitter.after.as_deref());
    match preflight::reads_config(&install, version, &settings, expected) {
        // The values alone may be wanted for a later restart that brings another template.
        Err(error) if args.no_restart => notes.push(error.message),
        answer => answer?,
    }
    let params = install.params.as_ref().and_then(|params| params.data.as_ref());
    let container = install.controller.container(Component::Controller);
    let served = container.and_then(|container| targets::served(container, params, version));
    if args.refreshes() {
        preflight::answers(&install)?;
    }
    let targets = targets::find(cluster, args, served.as_ref()).await?;
    notes.extend(warnings::of(&install, version, &change, expected));
    for note in &notes {
        context.talk.warn(note);
    }
    let repo_servers = observe::repo_servers(cluster, &install, version, false).await?;
    let mut job = Job {
        args,
        cluster,
        talk: &context.talk,
        deadline,
        started,
        install,
        version,
        change,
        expected,
        controllers,
        repo_servers,
        targets,
        restarts: Vec::new(),
        warnings: notes,
        done: Done::default(),
    };
    if args.dry_run || !job.settles_first() {
        job.decide_restarts().await?;
    }
    Ok(job)
}
