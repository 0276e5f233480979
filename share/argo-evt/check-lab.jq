# The rules of check-lab.sh, over one document that holds everything it found out. Prints a line for each artifact that
# holds, and for each fault the artifact and the reason.

# Types of values.
def commit_id: type == "string" and test("^([0-9a-f]{40}|[0-9a-f]{64})$");
def unix_time: type == "number" and . > 1e9 and . < 1e11;
def http_status: type == "number" and . >= 100 and . < 600;

# `90s`, `2m30s`, `1h0m0s` in seconds; a bare number is seconds.
def seconds:
    if test("^[0-9]+$") then tonumber
    else [scan("([0-9.]+)(h|ms|m|s)") | (.[0] | tonumber) * {h: 3600, m: 60, s: 1, ms: 0.001}[.[1]]] | add
    end;

# A reason, unless the condition holds.
def check(condition; reason): if (try condition catch false) == true then empty else reason end;

# What is wrong with the value under a key of an object.
def key(name; kind; holds):
    if has(name) | not then "key \(name) is missing"
    else check(.[name] | holds; "\(name) is no \(kind): \(.[name] | tojson)")
    end;
def commit(name): key(name; "commit id"; commit_id);
def time(name): key(name; "unix time"; unix_time);
def http(name): key(name; "http status"; http_status);
def plain(name; kind): key(name; kind; type == kind);
def object(keys): if type == "object" then keys else "missing, or not one JSON object" end;

# The faults of an artifact: `rest` is only judged where `first` found none.
def artifact($name; first; rest): [first] as $faults | {$name, faults: (if $faults == [] then [rest] else $faults end)};

# The commits of repo/, oldest first, as {id, rev}.
def place($all; $id): $all.commits | map(.id) | index($id);
def says($all; $key; $id; $rev):
    place($all; $id) as $place
    | if $place == null then "\($key): \($id) is not a commit of repo/"
      else $all.commits[$place].rev | check(. == $rev; "\($key): commit \($id) says rev \(.), not \($rev)")
      end;
def comes_after($all; $key; $before; $id):
    check(place($all; $before) < place($all; $id); "\($key): \($id) does not come after \($before) in repo/");

# What Argo CD recorded: the commit, and not before it was seen there. A clock may be a little off; a full history has
# lost its oldest entries.
def deployed($all; $key; $commit; $seen):
    ($all.live.status.history // []) as $history
    | check($history | any(.revision == $commit) or length >= 10; "commit \($commit) is not in status.history of \($all.name)"),
      check($history | map(select(.revision == $commit) | .deployedAt | fromdateiso8601) | all(. >= $seen - 10);
          "\($key) is later than deployedAt in status.history of \($all.name)");

def period_line($text; $asked):
    check($text | type == "string"; "missing"),
    if $text == null then empty else
        ($text | split("\n") | map(select(. != "")
            | [scan("appResyncPeriod=([0-9hms]+), appHardResyncPeriod=")] | .[0][0] // null)) as $periods
        | if $periods == [] or ($periods | any(. == null)) then "not the appResyncPeriod line of the controller's log"
          else check($periods | all(seconds == ($asked | seconds)); "the period is not \($asked)")
          end
    end;

. as $all | .poll as $poll | .nopoll as $nopoll | .webhook as $webhook | .secret as $secret | .report as $report
| artifact("repo/";
    check(.commits != []; "missing, or not a Git repository with commits");
    (.signal // "" | split("\n")) as $signal
    | check($signal | index("kind: ConfigMap") != null; "app/signal.yaml is not a ConfigMap"),
      check($signal | index("  name: signal") != null; "the ConfigMap in app/signal.yaml is not named signal"),
      check($signal | all(startswith("  namespace:") | not); "the ConfigMap in app/signal.yaml has a namespace"),
      check($all.commits | any(.rev == "r1"); "no commit says rev r1"),
      check($all.pushed; "HEAD is not pushed to main")),

  artifact("app.yaml";
    .app | check(.kind == "Application"; "missing, or not an Application that kubectl can read");
    .app.spec
    | check(.project == "default"; "project is not default"),
      check(.source.targetRevision == "main"; "targetRevision is not main"),
      check(.source.path == "app"; "path is not app"),
      check(.destination.namespace | type == "string"; "the destination has no namespace"),
      check(.syncPolicy.automated | .prune and .selfHeal; "automated sync without prune and selfHeal"),
      check(.syncPolicy.syncOptions | any(. == "CreateNamespace=true"); "CreateNamespace=true is missing"),
      check(.source == $all.live.spec.source; "source is not that of \($all.name) in the cluster")),

  artifact("interval.txt";
    period_line(.interval; .poll_period);
    check(.interval | test("appResyncJitter=(?!0s)") | not; "the jitter is not 0s")),

  artifact("poll.json";
    $poll | object(commit("commit"), time("pushed_at"), time("synced_at"));
    says($all; "commit"; $poll.commit; "r2"),
    check($poll.synced_at >= $poll.pushed_at; "synced_at is before pushed_at"),
    check($poll.refresh_requested != true; "a refresh was requested during the wait, so it did not measure polling"),
    deployed($all; "synced_at"; $poll.commit; $poll.synced_at)),

  artifact("nopoll.json";
    $nopoll | object(commit("commit"), time("pushed_at"), time("checked_at"), commit("revision_at_check"));
    says($all; "commit"; $nopoll.commit; "r3"),
    check($nopoll.revision_at_check != $nopoll.commit; "the Application reached the commit although polling was off"),
    says($all; "revision_at_check"; $nopoll.revision_at_check; "r2"),
    comes_after($all; "commit"; $poll.commit?; $nopoll.commit),
    check($nopoll.pushed_at >= $poll.synced_at; "pushed_at is before synced_at of poll.json"),
    check($nopoll.checked_at - $nopoll.pushed_at >= (.no_poll_watch | seconds);
        "checked_at is less than \(.no_poll_watch) after pushed_at")),

  artifact("webhook.json";
    $webhook | object(http("http_status"), time("sent_at"), time("synced_at"));
    check($webhook.http_status == 200; "http_status is not 200"),
    check($webhook.synced_at >= $webhook.sent_at; "synced_at is before sent_at"),
    check($webhook.sent_at >= $nopoll.checked_at; "sent_at is before checked_at of nopoll.json"),
    check($webhook.commit == null or $webhook.commit == $nopoll.commit; "commit is not that of nopoll.json"),
    deployed($all; "synced_at"; $nopoll.commit?; $webhook.synced_at)),

  artifact("webhook-secret";
    .secret_file | check(. != null; "missing");
    .secret_file
    | check(.hex; "not 16 bytes in lower-case hex"),
      check(.private; "not for its owner only (mode 0600)"),
      check(.set; "not the webhook.github.secret of \($all.namespace)/argocd-secret")),

  artifact("secret.json";
    $secret | object(commit("commit"), http("unsigned_status"), http("signed_status"),
        commit("revision_after_unsigned"), time("signed_synced_at"));
    says($all; "commit"; $secret.commit; "r4"),
    comes_after($all; "commit"; $nopoll.commit?; $secret.commit),
    check($secret.unsigned_status >= 400 and $secret.unsigned_status < 500; "the unsigned event was not refused"),
    check($secret.signed_status == 200; "signed_status is not 200"),
    check($secret.revision_after_unsigned != $secret.commit; "the Application reached the commit after the unsigned event"),
    says($all; "revision_after_unsigned"; $secret.revision_after_unsigned; "r3"),
    check($secret.unsigned_body_sha256 == $secret.signed_body_sha256; "the signed event was not the same bytes"),
    check($secret.signed_synced_at >= $webhook.synced_at; "signed_synced_at is before synced_at of webhook.json"),
    deployed($all; "signed_synced_at"; $secret.commit; $secret.signed_synced_at)),

  artifact("restored.txt";
    period_line(.restored; .safety_net);
    check(.restored != .interval; "the same line as interval.txt"),
    check((.cm.data["timeout.reconciliation"] | seconds) == (.safety_net | seconds);
        "timeout.reconciliation of argocd-cm is not \(.safety_net)"),
    check(.cm.data | has("timeout.reconciliation.jitter") | not; "argocd-cm still has timeout.reconciliation.jitter")),

  artifact("report.json";
    $report | object(plain("poll_seconds"; "number"), plain("nopoll_synced"; "boolean"),
        plain("webhook_seconds"; "number"), plain("unsigned_accepted"; "boolean"),
        plain("trigger"; "string"), plain("safety_net"; "string"));
    check($report.poll_seconds == $poll.synced_at - $poll.pushed_at; "poll_seconds is not what poll.json says"),
    check($report.nopoll_synced == ($nopoll.revision_at_check == $nopoll.commit);
        "nopoll_synced is not what nopoll.json says"),
    check($report.webhook_seconds == $webhook.synced_at - $webhook.sent_at;
        "webhook_seconds is not what webhook.json says"),
    check($report.unsigned_accepted
            == ($secret.unsigned_status < 400 or $secret.revision_after_unsigned == $secret.commit);
        "unsigned_accepted is not what secret.json says"),
    check($report.trigger == "webhook"; "trigger is not webhook"),
    check($report.safety_net == "timeout.reconciliation"; "safety_net is not timeout.reconciliation"))

| if .faults == [] then "ok   \(.name)" else "FAIL \(.name): \(.faults[])" end
