//! The steps that change something. Each can be repeated: after a kill at any point the same command ends in the same
//! state.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kit::{
    cluster::{Ask, Cluster, Refused},
    error::Error,
    exit::Exit,
    moment::Moment,
    talk::Talk,
    version::Version,
};
use kube::Api;
use serde_json::Value;

use crate::{
    args::Args,
    deadline::Deadline,
    drift,
    expected::{self, Expected},
    install::{self, Install},
    line_out, load,
    observe::{self, ControllerPod, RepoServerPod},
    origin::CONFIG,
    plan::{self, Change, ORDER},
    preflight,
    refresh::{self, Refreshed},
    restart::{self, Mode},
    rollout::{self, Rollout},
    targets::{self, Targets},
    undo, verdict,
    workload::Component,
};

/// How long after its pod is ready a line may take to appear in its log.
const LOG_DELAY: Duration = Duration::from_secs(5);

/// A job: what it works with, what it has found, what it has done.
pub struct Job<'a> {
    /// What was asked.
    pub args: &'a Args,
    /// Where.
    pub cluster: &'a Cluster,
    /// The voice on stderr.
    pub talk: &'a Talk,
    /// The time for everything.
    pub deadline: Deadline,
    /// When the command began.
    pub started: Moment,
    /// What there is of Argo CD, as last read.
    pub install: Install,
    /// Its version; the newest known where it does not show.
    pub version: Version,
    /// What is to be changed in `argocd-cm`.
    pub change: Change,
    /// What a pod that starts after that runs with.
    pub expected: Expected,
    /// The controller pods as last seen.
    pub controllers: Vec<ControllerPod>,
    /// The repo-server pods as last seen.
    pub repo_servers: Vec<RepoServerPod>,
    /// The Applications to refresh.
    pub targets: Targets,
    /// The workloads to restart, in this order.
    pub restarts: Vec<Component>,
    /// What the user was warned of.
    pub warnings: Vec<String>,
    /// What it has done.
    pub done: Done,
}

/// What a job has done so far.
#[derive(Default)]
pub struct Done {
    /// `argocd-cm` is changed.
    pub written: bool,
    /// These workloads were told to restart.
    pub restarted: Vec<Component>,
    /// How each refresh ended.
    pub refreshed: Vec<Refreshed>,
    /// Whether the old values could be put back, if that was tried.
    pub rolled_back: Option<bool>,
    /// How much asking the period makes.
    pub load: Option<Value>,
}

impl Job<'_> {
    /// Whether a rollout that is under way has to be waited for before it is known what to restart: nothing is to be
    /// written, so an earlier run may have been killed in it.
    pub fn settles_first(&self) -> bool {
        self.args.changes() && !self.change.is_change() && !self.args.restart && !self.args.no_restart
    }

    /// Does everything.
    ///
    /// # Errors
    /// What went wrong; what was done until then is in `done`.
    pub async fn run(&mut self) -> Result<(), Error> {
        if self.settles_first() {
            self.settle().await?;
            self.decide_restarts().await?;
        }
        if self.change.is_change() {
            self.install.config = write(self.cluster, &self.change.patch(), Mode::Real).await?;
            self.done.written = true;
            self.talk.say(format!("{}/{CONFIG}: {}", self.cluster.namespace, self.change.words()));
        }
        for component in self.restarts.clone() {
            if let Err(error) = self.restart(component).await {
                return Err(undo::after(self, error).await);
            }
        }
        if self.done.written || !self.done.restarted.is_empty() {
            self.observe().await?;
        }
        if let Some(path) = &self.args.line_out {
            line_out::write(path, &self.controllers)?;
        }
        if self.args.changes() && !self.args.no_restart {
            verdict::of(&self.install, &self.change, self.expected, &self.controllers, &self.drift())?;
            let shown = expected::show(self.expected.period_s);
            self.talk.say(format!("in force: {shown}, in {0} of {0} controller pods", self.controllers.len()));
        }
        if !self.args.changes() && !self.args.refreshes() {
            self.done.load = Some(self.load().await?);
        }
        self.refresh().await
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
        if waited { self.observe().await } else { Ok(()) }
    }

    /// Decides which workloads have to be restarted, and lets the API server rehearse all writes.
    ///
    /// # Errors
    /// When a restart that is needed would replace no pod (exit code 2), and what the API server would refuse.
    pub async fn decide_restarts(&mut self) -> Result<(), Error> {
        if !self.args.changes() {
            return Ok(());
        }
        if self.args.no_restart {
            return self.rehearse().await;
        }
        self.restarts = if self.args.restart {
            ORDER.to_vec()
        } else {
            plan::restarts(&self.change, self.expected, &self.controllers, &self.repo_servers)
        };
        self.restarts.iter().try_for_each(|component| preflight::restarts(&self.install, *component))?;
        self.rehearse().await
    }

    async fn rehearse(&self) -> Result<(), Error> {
        if self.args.dry_run {
            return Ok(());
        }
        if self.change.is_change() {
            heed(write(self.cluster, &self.change.patch(), Mode::Rehearsal).await)?;
        }
        for component in &self.restarts {
            let workload = self.install.workload(*component);
            heed(restart::start(self.cluster, workload, Mode::Rehearsal).await)?;
            // The rollout is watched by this.
            install::again(self.cluster, workload).await?;
        }
        Ok(())
    }

    async fn restart(&mut self, component: Component) -> Result<(), Error> {
        restart::start(self.cluster, self.install.workload(component), Mode::Real).await?;
        self.done.restarted.push(component);
        self.talk.say(format!("{}: restarted", self.install.workload(component)));
        self.finish(component).await
    }

    /// Waits for the rollout of a workload.
    ///
    /// # Errors
    /// As [`restart::finish`].
    pub async fn finish(&mut self, component: Component) -> Result<(), Error> {
        let workload = self.install.workload(component).clone();
        let grace = self.args.error_grace;
        let done = restart::finish(self.cluster, self.talk, &workload, grace, self.deadline).await?;
        self.talk.say(format!("{workload}: {0} of {0} pods are new and ready", done.replicas));
        match component {
            Component::Controller => self.install.controller = done,
            Component::RepoServer => self.install.repo_server = done,
        }
        Ok(())
    }

    /// Looks at the pods again. A ready pod has printed its startup line, but its log may be a moment behind.
    ///
    /// # Errors
    /// As [`observe::controllers`].
    pub async fn observe(&mut self) -> Result<(), Error> {
        let patience = Deadline::new(LOG_DELAY);
        let (cluster, version) = (self.cluster, self.version);
        if let Some(config) = install::config_map(cluster, CONFIG).await? {
            self.install.config = config;
        }
        let restarted = |component| self.done.restarted.contains(&component);
        let (controller, repo_server) = (restarted(Component::Controller), restarted(Component::RepoServer));
        loop {
            self.controllers = observe::controllers(cluster, &self.install, version, controller).await?;
            let is_late = self.controllers.iter().any(|pod| pod.is_starting);
            if !is_late || self.args.no_restart || patience.left().is_zero() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.repo_servers = observe::repo_servers(cluster, &self.install, version, repo_server).await?;
        Ok(())
    }

    /// Where things differ at the moment.
    pub fn drift(&self) -> Vec<String> {
        drift::of(&self.install, self.version, self.expected, &self.controllers, &self.repo_servers)
    }

    async fn refresh(&mut self) -> Result<(), Error> {
        let targets = self.targets.all.clone();
        let limit = usize::from(self.args.max_in_flight);
        let periods: Option<Vec<u64>> = self.controllers.iter().map(|pod| pod.proof.period_s).collect();
        let shortest = periods.map(|all| all.into_iter().filter(|period_s| *period_s > 0).min().unwrap_or(0));
        let means = refresh::Means {
            cluster: self.cluster,
            talk: self.talk,
            limit,
            patience: self.args.app_timeout,
            deadline: self.deadline,
            period_s: shortest,
        };
        refresh::all(means, targets, &mut self.done.refreshed).await;
        let refreshed = &self.done.refreshed;
        let failed: Vec<_> = refreshed.iter().filter_map(|one| Some((&one.target.app, one.error.as_ref()?))).collect();
        let Some(worst) = failed.iter().map(|(_, error)| error.exit).max() else {
            match &refreshed[..] {
                [] => {}
                [one] => self.talk.say(format!("refreshed {}", one.target.app)),
                all => self.talk.say(format!("refreshed all {} Applications", all.len())),
            }
            return Ok(());
        };
        if let [(_, only)] = failed[..] {
            return Err(only.clone());
        }
        let names: Vec<_> = failed.iter().map(|(app, _)| app.to_string()).collect();
        let count = format!("{} of {} Applications were not refreshed", names.len(), refreshed.len());
        Err(Error::new(worst, "not-refreshed", format!("{count}: {}", names.join(", ")))
            .hint("`refreshed` in the output says why for each"))
    }

    async fn load(&self) -> Result<Value, Error> {
        let apps = match targets::list(self.cluster, true, None).await {
            Err(error) if error.exit == Exit::Denied => targets::list(self.cluster, false, None).await?,
            answer => answer?,
        };
        let repositories: Vec<_> = apps.iter().map(targets::repository).collect();
        Ok(load::an_hour(self.expected.period_s, self.expected.ref_age_s, &repositories))
    }
}

/// A rehearsal tells what is forbidden or invalid. What else goes wrong with it may not with the real write: there are
/// admission webhooks that refuse every dry run.
fn heed<T>(rehearsal: Result<T, Refused>) -> Result<(), Error> {
    match rehearsal {
        Err(refused) if matches!(refused.status, Some(401 | 403 | 404 | 422)) => Err(refused.error),
        _ => Ok(()),
    }
}

/// Merges a patch into `argocd-cm`, and returns it as it is then.
///
/// # Errors
/// As [`Cluster::call`].
pub async fn write(cluster: &Cluster, patch: &Value, mode: Mode) -> Result<ConfigMap, Refused> {
    let api = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let ask = Ask { verb: "patch", resource: "configmaps", namespace: &cluster.namespace, name: CONFIG };
    restart::merge(cluster, &api, ask, patch, mode).await
}
