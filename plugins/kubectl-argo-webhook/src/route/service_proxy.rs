//! Through the API server's proxy. It forwards body and headers as they are, all but `Authorization`, and does not
//! verify the server's certificate (kubernetes staging/src/k8s.io/apimachinery/pkg/util/proxy).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use kit::cluster::{Ask, Cluster};
use kube::client::Body;

use super::{Answer, Trouble, text};

/// The answer is read raw: the client's own calls would take Argo CD's text for a broken Status.
pub(super) async fn post(
    cluster: &Cluster,
    path: &str,
    headers: &HeaderMap,
    body: &Bytes,
    limit: Duration,
) -> Result<Answer, Trouble> {
    let mut request = Request::post(path).body(Body::from(body.clone())).map_err(|error| {
        Trouble::Fatal(kit::error::Error::usage("bad-path", format!("cannot post to {path}: {error}")))
    })?;
    request.headers_mut().extend(headers.clone());
    let call = async {
        let response = cluster.client.send(request).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect_bytes().await?;
        Ok::<_, kube::Error>(Answer { status: parts.status.as_u16(), headers: parts.headers, body: text(&body) })
    };
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => {
            let ask = Ask { verb: "create", resource: "services/proxy", namespace: &cluster.namespace, name: "" };
            let refused = cluster.refused(ask, &error).error;
            Err(if refused.exit == kit::exit::Exit::Unknown {
                Trouble::Dropped(refused.message)
            } else {
                Trouble::Fatal(refused)
            })
        }
        Err(_) => Err(Trouble::TimedOut(limit)),
    }
}
