//! The kinds of install, as the argo-cd manifests, the chart and the operator make them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use standin::{
    Install, Options, Standin,
    processes::{Component, Process},
};

fn names(standin: &Standin, resource: &str) -> Vec<String> {
    let objects = standin.store().list(resource, Some("argocd")).0;
    objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn controllers(standin: &Standin) -> Vec<Process> {
    standin.cluster().processes.of(Component::Controller)
}

fn of(install: Install) -> Options {
    Options { install, ..Options::default() }
}

fn container(standin: &Standin, resource: &str, name: &str) -> Value {
    let workload = standin.store().get(resource, "argocd", name).expect("the install has it");
    workload["spec"]["template"]["spec"]["containers"][0]["name"].clone()
}

#[test]
fn the_manifests_name_everything_argocd() {
    let standin = Standin::start();
    assert_eq!(names(&standin, "statefulsets.apps"), ["argocd-application-controller"]);
    assert_eq!(names(&standin, "deployments.apps"), ["argocd-repo-server", "argocd-server"]);
    assert_eq!(names(&standin, "services"), ["argocd-server"]);
    assert_eq!(container(&standin, "deployments.apps", "argocd-server"), "argocd-server");
    let pod = standin.store().get("pods", "argocd", "argocd-application-controller-0").expect("it runs");
    let labels: Vec<_> = pod["metadata"]["labels"].as_object().expect("labels").keys().cloned().collect();
    let own: Vec<_> = labels.iter().filter(|label| label.starts_with("app.kubernetes.io/")).collect();
    assert_eq!(own, ["app.kubernetes.io/name"]);
    let set = standin.store().get("statefulsets.apps", "argocd", "argocd-application-controller").expect("it is there");
    assert_eq!(set["spec"]["updateStrategy"], json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}));
    let settings = standin.store().get("configmaps", "argocd", "argocd-cm").expect("it is there");
    assert_eq!(settings["data"], Value::Null);
}

#[test]
fn core_has_no_server() {
    let standin = Standin::with(of(Install::Core));
    assert_eq!(names(&standin, "deployments.apps"), ["argocd-repo-server"]);
    assert_eq!(names(&standin, "services"), Vec::<String>::new());
}

#[test]
fn the_chart_has_release_names_short_containers_and_sets_the_keys() {
    for (release, full) in [("argocd", "argocd"), ("prod", "prod-argocd")] {
        let standin = Standin::with(of(Install::Helm { release: release.into() }));
        assert_eq!(names(&standin, "statefulsets.apps"), [format!("{full}-application-controller")]);
        let server = format!("{full}-server");
        assert_eq!(container(&standin, "deployments.apps", &server), "server");
        assert_eq!(names(&standin, "services"), [server]);
        let settings = standin.store().get("configmaps", "argocd", "argocd-cm").expect("the name is fixed");
        assert_eq!(settings["data"]["timeout.reconciliation"], "120s");
        assert_eq!(settings["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
        let pods = standin.store().list("pods", Some("argocd")).0;
        assert!(pods.iter().all(|pod| pod["metadata"]["labels"]["app.kubernetes.io/instance"] == release));
        assert_eq!(controllers(&standin)[0].env["ARGOCD_RECONCILIATION_JITTER"], "60s");
    }
}

#[test]
fn the_operator_owns_the_configmap() {
    let standin = Standin::with(of(Install::Operator { name: "openshift-gitops".into() }));
    assert_eq!(names(&standin, "statefulsets.apps"), ["openshift-gitops-application-controller"]);
    let settings = standin.store().get("configmaps", "argocd", "argocd-cm").expect("the name is fixed");
    assert_eq!(settings["metadata"]["ownerReferences"][0]["kind"], "ArgoCD");
}

#[test]
fn dynamic_distribution_has_a_deployment_beside_an_empty_statefulset() {
    let standin = Standin::with(Options { controllers: 3, ..of(Install::Dynamic) });
    let name = "argocd-application-controller";
    let set = standin.store().get("statefulsets.apps", "argocd", name).expect("it is there");
    let deployment = standin.store().get("deployments.apps", "argocd", name).expect("it is there");
    assert_eq!((&set["spec"]["replicas"], &deployment["spec"]["replicas"]), (&json!(0), &json!(3)));
    assert_eq!(controllers(&standin).len(), 3);
}

#[test]
fn shards_are_pods_with_ordinals_that_know_how_many_there_are() {
    let standin = Standin::with(Options { controllers: 3, repo_servers: 2, servers: 2, ..Options::default() });
    let pods: Vec<_> = controllers(&standin).into_iter().map(|process| process.pod).collect();
    assert_eq!(pods, [0, 1, 2].map(|ordinal| format!("argocd-application-controller-{ordinal}")));
    assert!(controllers(&standin).iter().all(|process| process.env["ARGOCD_CONTROLLER_REPLICAS"] == "3"));
    assert_eq!(standin.cluster().processes.of(Component::RepoServer).len(), 2);
    assert_eq!(standin.cluster().processes.of(Component::Server).len(), 2);
}

#[test]
fn older_versions_have_older_images_and_fewer_variables() {
    let of_version = |version: &str, settings: &[(&str, &str)]| {
        let settings: BTreeMap<_, _> = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let standin = Standin::with(Options { version: version.into(), settings, ..Options::default() });
        controllers(&standin).remove(0)
    };
    let jitter = [("timeout.reconciliation", "90s"), ("timeout.reconciliation.jitter", "5s")];
    let old = of_version("v2.8.0", &jitter);
    assert_eq!((old.version.as_str(), old.env.get("ARGOCD_RECONCILIATION_JITTER")), ("v2.8.0", None));
    assert_eq!(old.env["ARGOCD_RECONCILIATION_TIMEOUT"], "90s");
    let new = of_version("v3.5.1", &jitter);
    assert_eq!(new.env["ARGOCD_RECONCILIATION_JITTER"], "5s");
}

#[test]
fn the_controller_can_be_wired_otherwise() {
    let other = json!({"name": "ARGOCD_RECONCILIATION_TIMEOUT", "valueFrom": {"configMapKeyRef": {"name": "mine", "key": "k", "optional": true}}});
    let literal = json!({"name": "ARGOCD_RECONCILIATION_JITTER", "value": "7s"});
    let standin = Standin::with(Options {
        controller_args: vec!["--app-resync=60".into()],
        controller_env: vec![other, literal],
        settings: BTreeMap::from([("timeout.reconciliation".into(), "30s".into())]),
        ..Options::default()
    });
    let process = controllers(&standin).remove(0);
    assert_eq!(process.args, ["/usr/local/bin/argocd-application-controller", "--app-resync=60"]);
    assert_eq!(process.env.get("ARGOCD_RECONCILIATION_TIMEOUT"), None);
    assert_eq!(process.env["ARGOCD_RECONCILIATION_JITTER"], "7s");
}

#[test]
fn the_servers_certificate_is_in_the_secret_and_names_the_service() {
    let standin = Standin::start();
    let secret = standin.store().get("secrets", "argocd", "argocd-secret").expect("it is part of the install");
    let directory = tempfile::tempdir().expect("a folder can be made");
    let file = directory.path().join("tls.crt");
    let mut kubectl = standin.kubectl();
    let template = r"go-template={{index .data `tls.crt` | base64decode}}";
    kubectl.args(["-n", "argocd", "get", "secret", "argocd-secret", "-o", template]);
    std::fs::write(&file, kubectl.output().expect("kubectl is there").stdout).expect("the folder can be written");
    let openssl = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-ext", "subjectAltName", "-in"])
        .arg(&file)
        .output()
        .expect("openssl is there");
    let text = String::from_utf8_lossy(&openssl.stdout).into_owned();
    for name in ["localhost", "argocd-server", "argocd-server.argocd", "argocd-server.argocd.svc.cluster.local"] {
        assert!(text.split([',', '\n']).any(|part| part.trim() == format!("DNS:{name}")), "{text}");
    }
    assert!(secret["data"]["tls.key"].is_string());
}
