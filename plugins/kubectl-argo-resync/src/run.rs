//! The job from beginning to end.

use kit::{
    cluster::Cluster,
    command::{Context, Report, interrupted},
    error::Error,
    file::{self, Mode},
    moment::Moment,
    version::Version,
};

use crate::{
    args::Args,
    install::Install,
    job::Job,
    observe,
    plan::{Change, Settings},
    preflight,
    report::{self, Expected},
    restart::Deadline,
    restore, targets, wanted,
};

/// Looks at everything, refuses what cannot work, then does it.
///
/// # Errors
/// When nothing was begun: see [`preflight`].
pub async fn run(args: Args, context: Context) -> Result<Report, Error> {
    let started = Moment::now();
    let deadline = Deadline::new(args.timeout);
    let asked = Settings {
        period: args.period.as_deref().map(wanted::period).transpose()?,
        jitter: args.jitter.as_deref().map(wanted::jitter).transpose()?,
    };
    let restore = match &args.restore {
        Some(path) => Some(restore::parse(&file::read(path)?, &path.display().to_string())?),
        None => None,
    };
    if let Some(path) = &args.line_out {
        writable(path)?;
    }
    let cluster = args.cluster.connect(&context.talk).await?;
    let prepared = tokio::select! {
        biased;
        prepared = prepare(&args, &cluster, asked, restore, started, deadline, &context) => prepared,
        exit = context.interrupt.wait() => return Err(interrupted(exit)),
    };
    let mut job = prepared?;
    if args.dry_run {
        return Ok(job.dry_run());
    }
    let result = tokio::select! {
        biased;
        result = job.run() => result,
        exit = context.interrupt.wait() => Err(interrupted(exit)),
    };
    Ok(job.report(result))
}

async fn prepare<'a>(
    args: &'a Args,
    cluster: &'a Cluster,
    mut settings: Settings,
    restore: Option<[Option<String>; 2]>,
    started: Moment,
    deadline: Deadline,
    context: &'a Context,
) -> Result<Job<'a>, Error> {
    let mut install = Install::read(cluster, args.controller.as_deref(), args.repo_server.as_deref()).await?;
    let mut controllers = observe::controllers(cluster, &install, install.version.unwrap_or(Version::NEWEST)).await?;
    if install.version.is_none() {
        install.version = controllers.iter().find_map(|pod| pod.version);
        if let Some(version) = install.version {
            controllers = observe::controllers(cluster, &install, version).await?;
        }
    }
    let version = install.version.unwrap_or(Version::NEWEST);
    let mut notes = Vec::new();
    if let Some(values) = restore {
        (settings, notes) = restore::settings(version, values);
    }
    let settings = preflight::known_to(version, settings)?;
    let change =
        Change::new(install.value(crate::period::PERIOD_KEY), install.value(crate::period::JITTER_KEY), &settings);
    let expected = Expected::new(version, change.period.after.as_deref(), change.jitter.after.as_deref());
    if !args.no_restart {
        preflight::reads_config(&install, version, &settings, expected)?;
    }
    let served = install.controller.container(crate::workload::Component::Controller).and_then(|container| {
        targets::served(container, install.params.as_ref().and_then(|params| params.data.as_ref()))
    });
    let targets = targets::find(cluster, args, served.as_deref()).await?;
    notes.extend(report::warnings(&install, version, &change, expected));
    let mut job = Job::new(args, cluster, &context.talk, deadline, started, install, version, change, expected);
    job.controllers = controllers;
    job.targets = targets;
    job.warn(notes);
    job.decide_restarts().await?;
    Ok(job)
}

/// A path that cannot be written is found before anything is changed.
fn writable(path: &std::path::Path) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(Error::usage(
            "cannot-write",
            format!("cannot write {}: it is no file in a folder that exists", path.display()),
        )
        .hint("give --line-out another path"));
    }
    Ok(())
}

/// Writes the startup lines, each with a newline, in the order of the pods.
///
/// # Errors
/// When a pod has none, or the file cannot be written.
pub fn write_lines(path: &std::path::Path, pods: &[observe::ControllerPod]) -> Result<(), Error> {
    let mut bytes = Vec::new();
    for pod in pods {
        let Some(line) = &pod.line else {
            return Err(Error::unknown("no-line", format!("controller pod {}: {}", pod.name, pod.proof.how))
                .hint("--restart makes new pods, whose logs begin with the line"));
        };
        bytes.extend_from_slice(&line.bytes);
        bytes.push(b'\n');
    }
    file::write(path, &bytes, Mode::Public)
}
