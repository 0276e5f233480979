//! The real kubectl against the stand-in.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use standin::{Options, Standin, processes::Component};

const APPLICATION: &str = r#"
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: evt
  namespace: argocd
spec:
  project: default
  source:
    repoURL: http://git.invalid/evt.git
    targetRevision: main
    path: app
  destination:
    server: https://kubernetes.default.svc
    namespace: evt
"#;

fn run(mut command: Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kubectl is there");
    child.stdin.take().expect("stdin is piped").write_all(input.as_bytes()).expect("kubectl reads its input");
    child.wait_with_output().expect("kubectl ends")
}

fn kubectl_with(standin: &Standin, arguments: &str, input: &str) -> Result<String, String> {
    let mut command = standin.kubectl();
    command.args(["-n", "argocd"]).args(arguments.split(' '));
    let output = run(command, input);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn kubectl(standin: &Standin, arguments: &str) -> Result<String, String> {
    kubectl_with(standin, arguments, "")
}

#[track_caller]
fn ok(standin: &Standin, arguments: &str) -> String {
    kubectl(standin, arguments).unwrap_or_else(|error| panic!("kubectl {arguments}: {error}"))
}

#[test]
fn get_prints_tables_and_json() {
    let standin = Standin::start();
    let table = ok(&standin, "get statefulset,deployment --no-headers");
    let columns: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let rows: Vec<_> = columns.iter().filter(|row| !row.is_empty()).map(|row| (row[0], row[1])).collect();
    assert_eq!(
        rows,
        [
            ("statefulset.apps/argocd-application-controller", "1/1"),
            ("deployment.apps/argocd-repo-server", "1/1"),
            ("deployment.apps/argocd-server", "1/1"),
        ]
    );
    let one: Value = serde_json::from_str(&ok(&standin, "get cm argocd-cm -o json")).expect("kubectl prints JSON");
    assert_eq!(one["metadata"]["labels"]["app.kubernetes.io/part-of"], "argocd");
    let pods = ok(&standin, "get pods -l app.kubernetes.io/name=argocd-application-controller -o name");
    assert_eq!(pods, "pod/argocd-application-controller-0");
    let missing = kubectl(&standin, "get cm nope").expect_err("there is no such ConfigMap");
    assert_eq!(missing, "Error from server (NotFound): configmaps \"nope\" not found");
}

#[test]
fn apply_creates_then_changes_and_respects_dry_runs() {
    let standin = Standin::start();
    let apply = |arguments: &str, text: &str| kubectl_with(&standin, arguments, text);
    assert_eq!(
        apply("apply --dry-run=server -f -", APPLICATION),
        Ok("application.argoproj.io/evt created (server dry run)".into())
    );
    assert!(standin.store().get("applications.argoproj.io", "argocd", "evt").is_none());
    assert_eq!(apply("apply -f -", APPLICATION), Ok("application.argoproj.io/evt created".into()));
    assert_eq!(apply("apply -f -", APPLICATION), Ok("application.argoproj.io/evt unchanged".into()));
    let other = APPLICATION.replace("path: app", "path: other");
    assert_eq!(apply("apply -f -", &other), Ok("application.argoproj.io/evt configured".into()));
    let stored = standin.store().get("applications.argoproj.io", "argocd", "evt").expect("it was applied");
    assert_eq!(stored["spec"]["source"]["path"], "other");

    let deployment = ok(&standin, "get deploy argocd-repo-server -o yaml");
    let literal = deployment.replace("valueFrom:\n            configMapKeyRef:\n              key: reposerver.log.level\n              name: argocd-cmd-params-cm\n              optional: true", "value: debug");
    assert_ne!(deployment, literal);
    assert_eq!(apply("apply -f -", &literal), Ok("deployment.apps/argocd-repo-server configured".into()));
    let env = "{.spec.template.spec.containers[0].env[?(@.name=='ARGOCD_REPO_SERVER_LOGLEVEL')].value}";
    assert_eq!(ok(&standin, &format!("get deploy argocd-repo-server -o jsonpath={env}")), "debug");
    ok(&standin, "rollout status deploy argocd-repo-server --timeout=20s");
}

#[test]
fn apply_takes_every_kind_that_the_lab_writes() {
    let standin = Standin::start();
    let documents = r#"
apiVersion: v1
kind: Namespace
metadata: {name: gitsrv}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: gitsrv}
data: {a: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: gitsrv}
data: {key: dmFsdWU=}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: githttp, namespace: gitsrv}
spec:
  selector: {matchLabels: {app: githttp}}
  template:
    metadata: {labels: {app: githttp}}
    spec: {containers: [{name: git, image: "alpine:3", command: [sh]}]}
---
apiVersion: v1
kind: Service
metadata: {name: githttp, namespace: gitsrv}
spec: {selector: {app: githttp}, ports: [{port: 80}]}
"#;
    for expected in ["created", "unchanged"] {
        let mut command = standin.kubectl();
        command.args(["apply", "-f", "-"]);
        let output = run(command, documents);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.lines().filter(|line| line.ends_with(expected)).count(), 5, "{output:?}");
    }
    let secret = standin.store().get("secrets", "gitsrv", "s").expect("it was applied");
    assert_eq!(secret["data"], json!({"key": "dmFsdWU="}));
    let mut command = standin.kubectl();
    command.args(["-n", "gitsrv", "rollout", "status", "deploy/githttp", "--timeout=20s"]);
    assert!(run(command, "").status.success());
}

#[test]
fn patch_and_annotate_change_single_fields() {
    let standin = Standin::start();
    kubectl_with(&standin, "apply -f -", APPLICATION).expect("the Application is well formed");
    let patch = r#"{"data":{"timeout.reconciliation":"30s","other":"x"}}"#;
    assert_eq!(ok(&standin, &format!("patch cm argocd-cm --type merge -p {patch}")), "configmap/argocd-cm patched");
    ok(&standin, r#"patch cm argocd-cm --type merge -p {"data":{"other":null}}"#);
    let stored = standin.store().get("configmaps", "argocd", "argocd-cm").expect("it is part of the install");
    assert_eq!(stored["data"], json!({"timeout.reconciliation": "30s"}));
    let patched = stored["metadata"]["managedFields"].as_array().expect("writes are recorded");
    let manager = patched.iter().find(|entry| entry["manager"] == "kubectl-patch").expect("kubectl names itself");
    assert_eq!(manager["fieldsV1"], json!({"f:data": {"f:timeout.reconciliation": {}}}));

    ok(&standin, "annotate app evt argocd.argoproj.io/refresh=hard");
    ok(&standin, "label app evt team=a");
    assert_eq!(ok(&standin, "get app -l team=a -o name"), "application.argoproj.io/evt");
    ok(&standin, "annotate app evt argocd.argoproj.io/refresh-");
    let wrong = kubectl(&standin, r#"patch cm argocd-cm --type merge -p {"data":{"a":1}}"#);
    assert!(wrong.expect_err("a number is no text").contains("cannot unmarshal number"));
}

#[test]
fn restart_makes_a_new_pod_that_reads_the_configmap_again() {
    let standin = Standin::start();
    let period = || {
        let processes = standin.cluster().processes.of(Component::Controller);
        processes.iter().map(|process| process.env.get("ARGOCD_RECONCILIATION_TIMEOUT").cloned()).collect::<Vec<_>>()
    };
    let uid = |name: &str| standin.store().get("pods", "argocd", name).map(|pod| pod["metadata"]["uid"].clone());
    assert_eq!(period(), [None]);
    let before = uid("argocd-application-controller-0");
    ok(&standin, r#"patch cm argocd-cm --type merge -p {"data":{"timeout.reconciliation":"30s"}}"#);
    assert_eq!(period(), [None]);
    for workload in ["statefulset/argocd-application-controller", "deployment/argocd-repo-server"] {
        ok(&standin, &format!("rollout restart {workload}"));
        let status = ok(&standin, &format!("rollout status {workload} --timeout=20s"));
        assert!(status.contains("successfully rolled out") || status.contains("roll out complete"), "{status}");
    }
    assert_eq!(period(), [Some("30s".to_owned())]);
    assert_ne!(before, uid("argocd-application-controller-0"));
}

#[test]
fn a_rollout_shows_the_states_between() {
    let standin = Standin::with(Options { pod_start: Duration::from_millis(300), ..Options::default() });
    ok(&standin, "rollout restart deployment/argocd-repo-server");
    ok(&standin, "rollout restart statefulset/argocd-application-controller");
    ok(&standin, "rollout status deployment/argocd-repo-server --timeout=20s");
    ok(&standin, "rollout status statefulset/argocd-application-controller --timeout=20s");
    let states = |resource: &str, fields: &[&str]| -> Vec<Vec<u64>> {
        let events = standin.store().since(resource, 0).expect("the log is complete");
        let of = |status: &Value| fields.iter().map(|field| status[*field].as_u64().unwrap_or(0)).collect::<Vec<_>>();
        let controller = events.iter().filter(|event| {
            let name = event.object["metadata"]["name"].as_str().unwrap_or_default();
            name == "argocd-repo-server" || name == "argocd-application-controller"
        });
        let mut states: Vec<_> = controller
            .filter(|event| event.object["metadata"]["generation"] == 2)
            .map(|event| of(&event.object["status"]))
            .collect();
        states.dedup();
        states
    };
    let fields = ["observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
    let deployment = states("deployments.apps", &fields);
    // The status of the generation before is the first that is seen under the new one; in the end there is one pod again.
    assert_eq!(deployment.first(), Some(&vec![1, 1, 1, 1, 1]), "{deployment:?}");
    assert!(deployment.contains(&vec![2, 2, 1, 1, 1]), "{deployment:?}");
    assert_eq!(deployment.last(), Some(&vec![2, 1, 1, 1, 1]), "{deployment:?}");
    let set = states("statefulsets.apps", &["observedGeneration", "updatedReplicas", "readyReplicas"]);
    assert_eq!(set.first(), Some(&vec![1, 1, 1]), "{set:?}");
    assert!(set.contains(&vec![2, 0, 0]), "{set:?}");
    assert_eq!(set.last(), Some(&vec![2, 1, 1]), "{set:?}");
}

#[test]
fn logs_show_what_the_containers_wrote() {
    let standin = Standin::start();
    let process = standin.cluster().processes.of(Component::Controller).remove(0);
    process.print("first");
    process.print("second");
    let pod = "argocd-application-controller-0";
    assert!(ok(&standin, &format!("logs {pod}")).ends_with("first\nsecond"));
    assert_eq!(ok(&standin, &format!("logs {pod} --tail=1")), "second");
    assert_eq!(ok(&standin, &format!("logs {pod} -c argocd-application-controller --tail 1")), "second");
    assert!(ok(&standin, "logs statefulset/argocd-application-controller --tail 1").ends_with("second"));
    let stamped = ok(&standin, &format!("logs {pod} --tail=1 --timestamps"));
    assert!(stamped.starts_with("20") && stamped.ends_with("Z second"), "{stamped}");
    let previous = kubectl(&standin, &format!("logs {pod} --previous")).expect_err("it has not restarted");
    assert!(previous.contains("previous terminated container"), "{previous}");
    let other = kubectl(&standin, &format!("logs {pod} -c nope")).expect_err("there is no such container");
    assert!(other.contains("container nope is not valid for pod argocd-application-controller-0"), "{other}");
}

#[test]
fn logs_can_be_followed_until_the_container_ends() {
    let standin = Standin::start();
    let process = standin.cluster().processes.of(Component::Controller).remove(0);
    process.print("first");
    let mut command = standin.kubectl();
    command.args(["-n", "argocd", "logs", "-f", "--tail=1", "argocd-application-controller-0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("kubectl is there");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("first"));
    process.print("second");
    assert_eq!(lines.next().as_deref(), Some("second"));
    ok(&standin, "delete pod argocd-application-controller-0 --wait=false");
    assert_eq!(lines.next(), None);
    assert!(child.wait().expect("kubectl ends with the container").success());
}

#[test]
fn delete_and_wait_follow_an_object() {
    let standin = Standin::start();
    kubectl_with(&standin, "apply -f -", APPLICATION).expect("the Application is well formed");
    let mut command = standin.kubectl();
    command.args(["-n", "argocd", "wait", "app/evt", "--for=jsonpath={.status.sync.status}=Synced", "--timeout=20s"]);
    let waiting = command.stdout(Stdio::piped()).spawn().expect("kubectl is there");
    standin.until("kubectl watches", || standin.requests().iter().any(|request| request.query.contains("watch=true")));
    standin
        .store()
        .update("applications.argoproj.io", "argocd", "evt", |app| {
            app["status"] = json!({"sync": {"status": "Synced"}});
            Ok(())
        })
        .expect("it was applied");
    assert!(waiting.wait_with_output().expect("kubectl ends").status.success());
    ok(&standin, r#"patch app evt --type merge -p {"metadata":{"finalizers":["example.com/keep"]}}"#);
    ok(&standin, "delete app evt --wait=false");
    let marked = standin.store().get("applications.argoproj.io", "argocd", "evt").expect("the finalizer keeps it");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    ok(&standin, r#"patch app evt --type merge -p {"metadata":{"finalizers":null}}"#);
    ok(&standin, "wait app/evt --for=delete --timeout=20s");
}

#[test]
fn a_deleted_pod_is_replaced() {
    let standin = Standin::start();
    let before = ok(&standin, "get pods -l app.kubernetes.io/name=argocd-repo-server -o name");
    ok(&standin, &format!("delete {before}"));
    ok(&standin, "rollout status deploy/argocd-repo-server --timeout=20s");
    assert_ne!(before, ok(&standin, "get pods -l app.kubernetes.io/name=argocd-repo-server -o name"));
    let uid = |pod: &Value| pod["metadata"]["uid"].clone();
    let controller = || standin.store().get("pods", "argocd", "argocd-application-controller-0");
    let before = controller().expect("it runs");
    ok(&standin, "delete pod argocd-application-controller-0 --wait=false");
    standin.until("a new pod", || controller().is_some_and(|pod| uid(&pod) != uid(&before)));
    ok(&standin, "rollout status sts/argocd-application-controller --timeout=20s");
}

#[test]
fn secrets_are_created_replaced_and_scaled_workloads_follow() {
    let standin = Standin::start();
    ok(&standin, "create secret generic hook --from-literal=key=value");
    let taken =
        kubectl(&standin, "create secret generic hook --from-literal=key=value").expect_err("the name is taken");
    assert!(taken.contains("secrets \"hook\" already exists"), "{taken}");
    let json = ok(&standin, "get secret hook -o json");
    assert_eq!(kubectl_with(&standin, "replace -f -", &json), Ok("secret/hook replaced".into()));
    ok(&standin, "patch secret hook --type merge -p {\"stringData\":{\"key\":\"other\"}}");
    let old = kubectl_with(&standin, "replace -f -", &json).expect_err("it has changed since");
    assert!(old.contains("the object has been modified; please apply your changes to the latest version"), "{old}");
    ok(&standin, "create cm c --from-literal=a=1");
    ok(&standin, "scale sts argocd-application-controller --replicas=2");
    ok(&standin, "rollout status sts/argocd-application-controller --timeout=20s");
    assert_eq!(standin.cluster().processes.of(Component::Controller).len(), 2);
    ok(&standin, "set env sts/argocd-application-controller ARGOCD_RECONCILIATION_TIMEOUT=45s");
    ok(&standin, "rollout status sts/argocd-application-controller --timeout=20s");
    let periods: Vec<_> = standin
        .cluster()
        .processes
        .of(Component::Controller)
        .iter()
        .map(|process| process.env["ARGOCD_RECONCILIATION_TIMEOUT"].clone())
        .collect();
    assert_eq!(periods, ["45s", "45s"]);
}

#[test]
fn a_rollout_can_be_undone() {
    let standin = Standin::start();
    let workload = "statefulset/argocd-application-controller";
    let hash = || {
        let pod = standin.store().get("pods", "argocd", "argocd-application-controller-0").expect("it runs");
        pod["metadata"]["labels"]["controller-revision-hash"].clone()
    };
    let before = hash();
    ok(&standin, &format!("set env {workload} A=b"));
    ok(&standin, &format!("rollout status {workload} --timeout=20s"));
    assert_ne!(hash(), before);
    assert!(ok(&standin, &format!("rollout history {workload}")).ends_with("2         <none>"));
    ok(&standin, &format!("rollout undo {workload}"));
    ok(&standin, &format!("rollout status {workload} --timeout=20s"));
    assert_eq!(hash(), before);

    ok(&standin, "set env deployment/argocd-repo-server A=b");
    ok(&standin, "rollout undo deployment/argocd-repo-server");
    ok(&standin, "rollout status deployment/argocd-repo-server --timeout=20s");
    let environment = ok(&standin, "set env deployment/argocd-repo-server --list");
    assert!(!environment.contains("A=b"), "{environment}");
}

#[test]
fn a_service_account_has_the_rights_that_were_bound_to_it() {
    let standin = Standin::start();
    ok(&standin, "create serviceaccount ci");
    ok(&standin, "create role ci --verb=get,list --resource=configmaps --resource-name=argocd-cm");
    ok(&standin, "create rolebinding ci --role=ci --serviceaccount=argocd:ci");
    let token = ok(&standin, "create token ci");
    let with =
        |arguments: &str| kubectl(&standin, &format!("--token={token} --kubeconfig={} {arguments}", bare(&standin)));
    assert_eq!(with("auth can-i get configmap/argocd-cm"), Ok("yes".into()));
    assert!(with("auth can-i patch configmap/argocd-cm").is_err());
    assert!(with("auth whoami").expect("anybody may ask").contains("system:serviceaccount:argocd:ci"));
    assert!(with("get cm argocd-cm").is_ok());
    let refused = with("get cm argocd-cmd-params-cm").expect_err("the Role names one ConfigMap");
    assert!(
        refused.contains("User \"system:serviceaccount:argocd:ci\" cannot get resource \"configmaps\""),
        "{refused}"
    );
    assert_eq!(
        kubectl(&standin, "get cm argocd-cm --as=eve").expect_err("eve has no Role"),
        "Error from server (Forbidden): \
        configmaps \"argocd-cm\" is forbidden: User \"eve\" cannot get resource \"configmaps\" in API group \"\" in the \
        namespace \"argocd\""
    );
}

/// A kubeconfig without a user: a token in it would win over `--token`.
fn bare(standin: &Standin) -> String {
    let path = standin.kubeconfig_for("nobody");
    let text = std::fs::read_to_string(&path).expect("the stand-in has written it");
    std::fs::write(&path, text.replace("token: standin-nobody", "{}")).expect("the folder can be written");
    path.display().to_string()
}
