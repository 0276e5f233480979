//! The steps that change something, each of which can be repeated, and what they leave in the output.

use std::time::Duration;

use kit::{
    cluster::{Ask, Cluster},
    command::Report,
    error::Error,
    exit::Exit,
    moment::Moment,
    talk::Talk,
    version::Version,
};
use kube::Api;
use serde_json::{Map, Value, json};

use crate::{
    args::Args,
    install::{self, Install},
    load,
    observe::{self, ControllerPod, RepoServerPod},
    origin::CONFIG,
    plan::{Change, Pods},
    preflight, refresh,
    refresh::Refreshed,
    report::{self, Expected},
    restart::{self, Deadline},
    rollout::{self, Rollout},
    run::write_lines,
    targets::{self, Targets},
    workload::Component,
};

/// The repo-server first: a controller that compares while it is away reports errors.
const ORDER: [Component; 2] = [Component::RepoServer, Component::Controller];
/// How long after its pod is ready a line may take to appear in its log.
const LOG_DELAY: Duration = Duration::from_secs(5);

/// A job, and what it has done so far.
pub struct Job<'a> {
    args: &'a Args,
    cluster: &'a Cluster,
    talk: &'a Talk,
    deadline: Deadline,
    started: Moment,
    install: Install,
    version: Version,
    change: Change,
    expected: Expected,
    /// The controller pods as last seen.
    pub controllers: Vec<ControllerPod>,
    repo_servers: Vec<RepoServerPod>,
    /// The Applications to refresh.
    pub targets: Targets,
    warnings: Vec<String>,
    restarts: Vec<Component>,
    written: bool,
    restarted: Vec<Component>,
    refreshed: Vec<Refreshed>,
    rolled_back: Option<bool>,
    load: Option<Value>,
}

impl<'a> Job<'a> {
    /// A job that has done nothing yet.
    #[allow(clippy::too_many_arguments, reason = "each is what one step before it found")]
    pub fn new(
        args: &'a Args,
        cluster: &'a Cluster,
        talk: &'a Talk,
        deadline: Deadline,
        started: Moment,
        install: Install,
        version: Version,
        change: Change,
        expected: Expected,
    ) -> Self {
        Job {
            args,
            cluster,
            talk,
            deadline,
            started,
            install,
            version,
            change,
            expected,
            controllers: Vec::new(),
            repo_servers: Vec::new(),
            targets: Targets::default(),
            warnings: Vec::new(),
            restarts: Vec::new(),
            written: false,
            restarted: Vec::new(),
            refreshed: Vec::new(),
            rolled_back: None,
            load: None,
        }
    }

    /// Says warnings and keeps them for the output.
    pub fn warn(&mut self, warnings: Vec<String>) {
        for warning in &warnings {
            self.talk.warn(warning);
        }
        self.warnings.extend(warnings);
    }

    /// Decides which workloads have to be restarted. When nothing is to be changed, a rollout that is under way (an
    /// earlier run may have been killed in it) is waited for first.
    ///
    /// # Errors
    /// When a restart that is needed cannot be made.
    pub async fn decide_restarts(&mut self) -> Result<(), Error> {
        if self.args.changes() && !self.change.is_change() && !self.args.restart && !self.args.dry_run {
            self.settle().await?;
        }
        self.repo_servers = observe::repo_servers(self.cluster, &self.install, self.version).await?;
        if !self.args.changes() || self.args.no_restart {
            return Ok(());
        }
        let all = |known: Vec<Option<bool>>| match known {
            known if known.contains(&Some(false)) => Some(false),
            known if known.is_empty() || known.contains(&None) => None,
            _ => Some(true),
        };
        let controller = Pods {
            changed: self.change.is_change(),
            in_force: all(self.controllers.iter().map(|pod| self.expected.of_controller(pod)).collect()),
        };
        let repo_server = Pods {
            changed: self.change.period.is_change(),
            in_force: all(self.repo_servers.iter().map(|pod| self.expected.of_repo_server(pod)).collect()),
        };
        // Nobody owns a deleted key: the time of its deletion may be lost. A controller that still runs with another
        // period shows that the repo-server may be as old.
        let other_period = |pod: &ControllerPod| pod.proof.period_s != Some(self.expected.period_s);
        let stale = self.change.period.after.is_none() && self.controllers.iter().any(other_period);
        let needed = |component| match component {
            Component::Controller => controller.need_restart(),
            Component::RepoServer => repo_server.need_restart() || stale,
        };
        self.restarts = ORDER.into_iter().filter(|component| self.args.restart || needed(*component)).collect();
        for component in &self.restarts {
            preflight::restarts(&self.install, *component)?;
        }
        Ok(())
    }

    async fn settle(&mut self) -> Result<(), Error> {
        let mut waited = false;
        for component in ORDER {
            let workload = self.install.workload(component).clone();
            let pods = install::pods(self.cluster, &workload).await?;
            if rollout::obstacle(&workload).is_none() && rollout::judge(&workload, &pods) != Rollout::Done {
                self.talk.say(format!("{workload}: a rollout is under way"));
                self.finish(component).await?;
                waited = true;
            }
        }
        if waited {
            self.controllers = observe::controllers(self.cluster, &self.install, self.version).await?;
        }
        Ok(())
    }

    /// Does everything.
    ///
    /// # Errors
    /// What went wrong; what was done until then is in the report.
    pub async fn run(&mut self) -> Result<(), Error> {
        if self.change.is_change() {
            self.write().await?;
        }
        for component in self.restarts.clone() {
            if let Err(error) = self.restart(component).await {
                return Err(self.undo(error).await);
            }
        }
        if self.written || !self.restarted.is_empty() {
            self.observe().await?;
        }
        if let Some(path) = &self.args.line_out {
            write_lines(path, &self.controllers)?;
        }
        if self.args.changes() && !self.args.no_restart {
            self.prove()?;
        }
        if !self.args.changes() && !self.args.refreshes() {
            self.load = Some(self.load().await?);
        }
        self.refresh().await
    }

    async fn write(&mut self) -> Result<(), Error> {
        let patch = self.change.patch();
        self.install.config = write(self.cluster, &patch).await?;
        self.written = true;
        self.talk.say(format!("{}/{CONFIG}: {}", self.cluster.namespace, self.change.words()));
        Ok(())
    }

    async fn restart(&mut self, component: Component) -> Result<(), Error> {
        restart::start(self.cluster, self.install.workload(component)).await?;
        self.restarted.push(component);
        self.talk.say(format!("{}: restarted", self.install.workload(component)));
        self.finish(component).await
    }

    async fn finish(&mut self, component: Component) -> Result<(), Error> {
        let workload = self.install.workload(component).clone();
        let grace = self.args.error_grace;
        let done = restart::finish(self.cluster, self.talk, component, &workload, grace, self.deadline).await?;
        self.talk.say(format!("{workload}: {} of {} pods are new and ready", done.replicas, done.replicas));
        match component {
            Component::Controller => self.install.controller = done,
            Component::RepoServer => self.install.repo_server = done,
        }
        Ok(())
    }

    /// A ready pod has printed its startup line, but the log may be a moment behind.
    async fn observe(&mut self) -> Result<(), Error> {
        let patience = Deadline::new(LOG_DELAY);
        loop {
            self.controllers = observe::controllers(self.cluster, &self.install, self.version).await?;
            if self.args.no_restart || patience.left().is_zero() || !self.controllers.iter().any(|pod| pod.is_starting)
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.repo_servers = observe::repo_servers(self.cluster, &self.install, self.version).await?;
        Ok(())
    }

    fn prove(&self) -> Result<(), Error> {
        let answers: Vec<_> = self.controllers.iter().map(|pod| (pod, self.expected.of_controller(pod))).collect();
        if let Some((pod, _)) = answers.iter().find(|(_, answer)| *answer == Some(false)) {
            let drift = self.drift().into_iter().find(|line| line.contains(&pod.name)).unwrap_or_default();
            return Err(
                Error::no("not-in-force", drift).hint("`kubectl argo-resync` shows where each value comes from")
            );
        }
        if let Some((pod, _)) = answers.iter().find(|(_, answer)| answer.is_none()) {
            let message = format!("what controller pod {} runs with cannot be proven: {}", pod.name, pod.proof.how);
            return Err(Error::unknown("unproven", message).hint("--restart makes new pods, whose logs begin with it"));
        }
        let shown = report::show(self.expected.period_s);
        self.talk.say(format!("in force: {shown}, in {} of {} controller pods", answers.len(), answers.len()));
        Ok(())
    }

    async fn refresh(&mut self) -> Result<(), Error> {
        let targets = std::mem::take(&mut self.targets.all);
        if targets.is_empty() {
            return Ok(());
        }
        let limit = usize::from(self.args.max_in_flight);
        let patience = self.args.app_timeout;
        self.refreshed = refresh::all(self.cluster, self.talk, targets, limit, patience, self.deadline).await;
        let failed: Vec<_> =
            self.refreshed.iter().filter_map(|one| Some((&one.target.app, one.error.as_ref()?))).collect();
        match failed[..] {
            [] => {
                self.talk.say(format!("refreshed {} Applications", self.refreshed.len()));
                Ok(())
            }
            [(_, error)] => Err(error.clone()),
            [(_, first), ..] => {
                let worst = failed.iter().map(|(_, error)| error.exit).max().unwrap_or(first.exit);
                let names: Vec<_> = failed.iter().map(|(app, _)| app.to_string()).collect();
                let message = format!(
                    "{} of {} Applications were not refreshed: {}",
                    names.len(),
                    self.refreshed.len(),
                    names.join(", ")
                );
                Err(Error::new(worst, "not-refreshed", message).hint("`refreshed` in the output says why for each"))
            }
        }
    }

    async fn load(&self) -> Result<Value, Error> {
        let apps = match targets::list(self.cluster, true, None).await {
            Err(error) if error.exit == Exit::Denied => targets::list(self.cluster, false, None).await?,
            answer => answer?,
        };
        let repositories: Vec<_> = apps.iter().map(targets::repository).collect();
        Ok(load::an_hour(self.expected.period_s, self.expected.ref_age_s, &repositories))
    }

    /// A restart failed: says how to put the old values back, or does it.
    async fn undo(&mut self, error: Error) -> Error {
        if !self.written {
            return error;
        }
        let changed = format!("{CONFIG} was changed ({})", self.change.words());
        let hint = |more: String| match &error.hint {
            Some(hint) => format!("{hint}; {more}"),
            None => more,
        };
        if !self.args.rollback {
            let more = hint(format!("{changed}: `{}` puts it back", self.command_back()));
            return error.clone().hint(more);
        }
        self.talk.error(&error);
        self.talk.say("putting the old values back");
        let result = self.roll_back().await;
        self.rolled_back = Some(result.is_ok());
        match result {
            Ok(()) => error.clone().hint(hint(format!("{changed} and put back"))),
            Err(again) => {
                let more = hint(format!("{changed}, and could not be put back: {}", again.message));
                error.clone().hint(more)
            }
        }
    }

    async fn roll_back(&mut self) -> Result<(), Error> {
        self.install.config = write(self.cluster, &self.change.undone().patch()).await?;
        self.deadline = Deadline::new(self.args.timeout);
        for component in self.restarted.clone() {
            restart::start(self.cluster, self.install.workload(component)).await?;
            self.finish(component).await?;
        }
        self.observe().await
    }

    /// The command that puts the old values back.
    fn command_back(&self) -> String {
        let word = |value: &Option<String>, parse: fn(&str) -> Result<crate::wanted::Wanted, Error>| match value {
            Some(text) if parse(text).is_ok() => text.clone(),
            _ => "default".into(),
        };
        let mut command = format!("kubectl argo-resync {}", word(&self.change.period.before, crate::wanted::period));
        if self.change.jitter.is_change() {
            command += &format!(" --jitter {}", word(&self.change.jitter.before, crate::wanted::jitter));
        }
        let cluster = &self.args.cluster;
        for (flag, value) in
            [("--context", &cluster.context), ("--cluster", &cluster.cluster), ("--user", &cluster.user)]
        {
            if let Some(value) = value {
                command += &format!(" {flag} {value}");
            }
        }
        if self.cluster.namespace != kit::cluster::DEFAULT_NAMESPACE {
            command += &format!(" -n {}", self.cluster.namespace);
        }
        command
    }

    fn drift(&self) -> Vec<String> {
        report::drift(&self.install, self.version, self.expected, &self.controllers, &self.repo_servers)
    }

    /// The patches that would be made.
    pub fn dry_run(self) -> Report {
        let namespace = &self.cluster.namespace;
        let mut patches = Vec::new();
        if self.change.is_change() {
            patches.push(json!({"resource": "configmaps", "namespace": namespace, "name": CONFIG, "type": "merge",
                "patch": self.change.patch()}));
        }
        for component in &self.restarts {
            let workload = self.install.workload(*component);
            patches.push(json!({"resource": workload.kind.resource(), "namespace": namespace, "name": workload.name(),
                "type": "merge", "patch": restart::patch()}));
        }
        for target in &self.targets.all {
            patches.push(json!({"resource": "applications.argoproj.io", "namespace": target.app.namespace,
                "name": target.app.name, "type": "merge",
                "patch": {"metadata": {"annotations": {crate::answer::REFRESH: target.kind()}}}}));
        }
        let mut object = self.object("dry-run");
        object.insert("patches".into(), json!(patches));
        Report::done(object)
    }

    /// What was done and found, and how it ended.
    pub fn report(self, result: Result<(), Error>) -> Report {
        let outcome = match &result {
            Ok(()) if !self.args.changes() && !self.args.refreshes() => "report",
            Ok(()) if self.written => "changed",
            Ok(()) if !self.restarted.is_empty() => "restarted",
            Ok(()) if !self.refreshed.is_empty() && !self.args.changes() => "refreshed",
            Ok(()) => "unchanged",
            Err(_) if self.rolled_back == Some(true) => "rolled-back",
            Err(error) => match error.exit {
                Exit::Deadline => "timeout",
                Exit::Interrupted | Exit::Terminated => "interrupted",
                _ => "failed",
            },
        };
        let object = self.object(outcome);
        match result {
            Ok(()) => Report::done(object),
            Err(error) => Report::failed(object, error),
        }
    }

    fn object(&self, outcome: &str) -> Map<String, Value> {
        let Expected { period_s, jitter_s, ref_age_s } = self.expected;
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| {
            object.insert(key.into(), value);
        };
        put("outcome", json!(outcome));
        put("version", json!(self.version.to_string()));
        put("period", json!(self.change.period.after));
        put("jitter", json!(self.change.jitter.after));
        put("previous", self.change.previous());
        put("workloads", report::workloads(&self.install, &self.restarted));
        put("controllers", report::controllers(&self.controllers));
        put("repo_servers", report::repo_servers(&self.repo_servers));
        put("next_restart", json!({"period_s": period_s, "jitter_s": jitter_s, "ref_age_s": ref_age_s}));
        put("drift", json!(self.drift()));
        put("worst_case_s", json!(load::worst_case_s(period_s, jitter_s, ref_age_s)));
        if let Some(load) = &self.load {
            put("load", load.clone());
        }
        if let Some(rolled_back) = self.rolled_back {
            put("rolled_back", json!(rolled_back));
        }
        put("refreshed", self.refreshed.iter().map(|one| one.entry.clone()).collect());
        if !self.targets.skipped.is_empty() {
            let skipped = self.targets.skipped.iter();
            put(
                "skipped",
                skipped.map(|(app, why)| json!({"app": app.name, "namespace": app.namespace, "why": why})).collect(),
            );
        }
        put("warnings", json!(self.warnings));
        self.started.stamp(&mut object, "started");
        Moment::now().stamp(&mut object, "done");
        object
    }
}

async fn write(cluster: &Cluster, patch: &Value) -> Result<k8s_openapi::api::core::v1::ConfigMap, Error> {
    let api = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let ask = Ask { verb: "patch", resource: "configmaps", namespace: &cluster.namespace, name: CONFIG };
    Ok(restart::merge(cluster, &api, ask, patch).await?)
}
