//! The Deployments and the StatefulSet, with the environment that the manifests wire to the ConfigMaps.

use serde_json::{Value, json};

use super::kind::{Install, Part, Shape};
use crate::{Options, argocd::version::Version, names, processes::Component};

const CM: &str = "argocd-cm";
const PARAMS: &str = "argocd-cmd-params-cm";

/// Variable, ConfigMap, key: what the suite or the stand-in reads of the manifests (argo-cd v3.5.1 manifests/base).
type Wire = (&'static str, &'static str, &'static str);

/// Variables that older manifests do not have, with the version in which they came.
const SINCE: &[(&str, u32, u32)] = &[
    ("ARGOCD_RECONCILIATION_JITTER", 2, 10),
    ("ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS", 2, 10),
    ("ARGOCD_REVISION_CACHE_LOCK_TIMEOUT", 2, 11),
    ("ARGOCD_SERVER_WEBHOOK_PARALLELISM_LIMIT", 2, 13),
    ("ARGOCD_HYDRATOR_ENABLED", 2, 14),
    ("ARGOCD_LOG_FORMAT_TIMESTAMP", 3, 0),
    ("ARGOCD_SERVER_WEBHOOK_REFRESH_WORKERS", 3, 5),
];

const CONTROLLER: &[Wire] = &[
    ("ARGOCD_RECONCILIATION_TIMEOUT", CM, "timeout.reconciliation"),
    ("ARGOCD_HARD_RECONCILIATION_TIMEOUT", CM, "timeout.hard.reconciliation"),
    ("ARGOCD_RECONCILIATION_JITTER", CM, "timeout.reconciliation.jitter"),
    ("ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS", PARAMS, "controller.repo.error.grace.period.seconds"),
    ("ARGOCD_APPLICATION_CONTROLLER_LOGFORMAT", PARAMS, "controller.log.format"),
    ("ARGOCD_APPLICATION_CONTROLLER_LOGLEVEL", PARAMS, "controller.log.level"),
    ("ARGOCD_LOG_FORMAT_TIMESTAMP", PARAMS, "log.format.timestamp"),
    ("ARGOCD_APPLICATION_CONTROLLER_SELF_HEAL_TIMEOUT_SECONDS", PARAMS, "controller.self.heal.timeout.seconds"),
    ("ARGOCD_CONTROLLER_SHARDING_ALGORITHM", PARAMS, "controller.sharding.algorithm"),
    ("ARGOCD_APPLICATION_NAMESPACES", PARAMS, "application.namespaces"),
    ("ARGOCD_HYDRATOR_ENABLED", PARAMS, "hydrator.enabled"),
];

const REPO_SERVER: &[Wire] = &[
    ("ARGOCD_RECONCILIATION_TIMEOUT", CM, "timeout.reconciliation"),
    ("ARGOCD_REPO_SERVER_LOGFORMAT", PARAMS, "reposerver.log.format"),
    ("ARGOCD_REPO_SERVER_LOGLEVEL", PARAMS, "reposerver.log.level"),
    ("ARGOCD_LOG_FORMAT_TIMESTAMP", PARAMS, "log.format.timestamp"),
    ("ARGOCD_REPO_CACHE_EXPIRATION", PARAMS, "reposerver.repo.cache.expiration"),
    ("ARGOCD_DEFAULT_CACHE_EXPIRATION", PARAMS, "reposerver.default.cache.expiration"),
    ("ARGOCD_REVISION_CACHE_LOCK_TIMEOUT", PARAMS, "reposerver.revision.cache.lock.timeout"),
];

const SERVER: &[Wire] = &[
    ("ARGOCD_SERVER_INSECURE", PARAMS, "server.insecure"),
    ("ARGOCD_SERVER_BASEHREF", PARAMS, "server.basehref"),
    ("ARGOCD_SERVER_ROOTPATH", PARAMS, "server.rootpath"),
    ("ARGOCD_SERVER_LOGFORMAT", PARAMS, "server.log.format"),
    ("ARGOCD_SERVER_LOG_LEVEL", PARAMS, "server.log.level"),
    ("ARGOCD_LOG_FORMAT_TIMESTAMP", PARAMS, "log.format.timestamp"),
    ("ARGOCD_SERVER_LISTEN_ADDRESS", PARAMS, "server.listen.address"),
    ("ARGOCD_APPLICATION_NAMESPACES", PARAMS, "application.namespaces"),
    ("ARGOCD_SERVER_WEBHOOK_PARALLELISM_LIMIT", PARAMS, "server.webhook.parallelism.limit"),
    ("ARGOCD_SERVER_WEBHOOK_REFRESH_WORKERS", PARAMS, "server.webhook.refresh.workers"),
];

/// All workloads of an install, each with its resource.
pub(super) fn workloads(options: &Options, shape: &Shape) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for (component, replicas) in [
        (Component::RepoServer, options.repo_servers),
        (Component::Server, options.servers),
        (Component::Controller, options.controllers),
    ] {
        let Some(part) = shape.part(component) else { continue };
        let template = template(options, shape, &part);
        if component != Component::Controller || options.install == Install::Dynamic {
            let spec = json!({"replicas": replicas, "selector": {"matchLabels": part.selector}, "template": template});
            all.push(("deployments.apps", workload(options, &part, "Deployment", spec)));
        }
        if component == Component::Controller {
            let replicas = if options.install == Install::Dynamic { 0 } else { replicas };
            let spec = json!({
                "replicas": replicas, "selector": {"matchLabels": part.selector}, "serviceName": part.workload,
                "template": template,
            });
            all.push(("statefulsets.apps", workload(options, &part, "StatefulSet", spec)));
        }
    }
    all
}

fn workload(options: &Options, part: &Part, kind: &str, mut spec: Value) -> Value {
    if kind == "Deployment" {
        spec["strategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
        spec["progressDeadlineSeconds"] = json!(600);
    } else {
        // The manifest names no strategy; this is what the API server fills in.
        spec["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
        spec["podManagementPolicy"] = json!("OrderedReady");
    }
    spec["revisionHistoryLimit"] = json!(10);
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": part.workload, "namespace": options.namespace, "labels": part.labels},
        "spec": spec, "status": {},
    })
}

fn template(options: &Options, shape: &Shape, part: &Part) -> Value {
    let (program, wires, ports) = match part.component {
        Component::Controller => ("argocd-application-controller", CONTROLLER, json!([{"containerPort": 8082}])),
        Component::RepoServer => {
            ("argocd-repo-server", REPO_SERVER, json!([{"containerPort": 8081}, {"containerPort": 8084}]))
        }
        Component::Server => ("argocd-server", SERVER, json!([{"containerPort": 8080}, {"containerPort": 8083}])),
    };
    let redis =
        json!({"name": "REDIS_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "argocd-redis", "key": "auth"}}});
    let mut env = vec![redis];
    if part.component == Component::Controller {
        env.push(json!({"name": "ARGOCD_CONTROLLER_REPLICAS", "value": options.controllers.to_string()}));
    }
    if options.install == Install::Dynamic && part.component == Component::Controller {
        env.push(json!({"name": "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION", "value": "true"}));
    }
    let version = Version::of_tag(&options.version);
    let has =
        |variable: &str| SINCE.iter().all(|(name, major, minor)| *name != variable || version.at_least(*major, *minor));
    for (variable, map, key) in wires.iter().filter(|(variable, ..)| has(variable)) {
        let reference = json!({"name": map, "key": key, "optional": true});
        env.push(json!({"name": variable, "valueFrom": {"configMapKeyRef": reference}}));
    }
    let mut args = vec![format!("/usr/local/bin/{program}")];
    if part.component == Component::Controller {
        for entry in &options.controller_env {
            match env.iter_mut().find(|known| known["name"] == entry["name"]) {
                Some(known) => *known = entry.clone(),
                None => env.push(entry.clone()),
            }
        }
        args.extend(options.controller_args.iter().cloned());
    }
    let image = format!("quay.io/argoproj/argocd:{}", options.version);
    let mut spec = json!({
        "serviceAccountName": part.workload,
        "containers": [{
            "name": part.container, "image": image, "args": args,
            "env": env, "ports": ports,
        }],
    });
    if part.component == Component::RepoServer {
        spec["initContainers"] = json!([{"name": "copyutil", "image": image, "command": ["sh", "-c"]}]);
    }
    let mut metadata = json!({"labels": part.pod_labels});
    if matches!(options.install, Install::Helm { .. }) {
        let settings = json!(shape.settings());
        metadata["annotations"] = json!({"checksum/cm": names::hash_of(&settings, 64)});
    }
    json!({"metadata": metadata, "spec": spec})
}
