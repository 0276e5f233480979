//! The API server's refusals: `Status` objects in its own words.

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::resources::Resource;

/// A `Status` object with `status: Failure`.
#[derive(Clone, Debug)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// `NotFound`, `Conflict`, …
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// What it is about; null when there is nothing to say.
    pub details: Value,
}

impl Status {
    /// A refusal without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status { code, reason, message: message.into(), details: Value::Null }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Status {
        self.details = json!({"name": name, "group": resource.group, "kind": resource.plural});
        self
    }

    /// 404 for an object.
    pub fn not_found(resource: &Resource, name: &str) -> Status {
        Status::new(404, "NotFound", format!("{} \"{name}\" not found", resource.key())).about(resource, name)
    }

    /// 409: the name is taken.
    pub fn already_exists(resource: &Resource, name: &str) -> Status {
        Status::new(409, "AlreadyExists", format!("{} \"{name}\" already exists", resource.key())).about(resource, name)
    }

    /// 409: it has changed meanwhile.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Status {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.key());
        Status::new(409, "Conflict", message).about(resource, name)
    }

    /// 422: the object as a whole is not acceptable; `cause` is `field: reason: detail`.
    pub fn invalid(resource: &Resource, name: &str, cause: &str) -> Status {
        let kind = if resource.group.is_empty() {
            resource.kind.into()
        } else {
            format!("{}.{}", resource.kind, resource.group)
        };
        let mut status = Status::new(422, "Invalid", format!("{kind} \"{name}\" is invalid: {cause}"));
        let field = cause.split(':').next().unwrap_or_default();
        status.details = json!({
            "name": name, "group": resource.group, "kind": resource.kind,
            "causes": [{"reason": "FieldValueInvalid", "message": cause, "field": field}],
        });
        status
    }

    /// 403 in the words of the RBAC authorizer. `resource` may have a subresource after a slash.
    pub fn forbidden(user: &str, verb: &str, resource: &str, group: &str, namespace: &str, name: &str) -> Status {
        let plural = resource.split('/').next().unwrap_or_default();
        let qualified = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let object = if name.is_empty() { qualified } else { format!("{qualified} \"{name}\"") };
        let place = if namespace.is_empty() {
            "at the cluster scope".into()
        } else {
            format!("in the namespace \"{namespace}\"")
        };
        let message = format!(
            "{object} is forbidden: User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}"
        );
        let mut status = Status::new(403, "Forbidden", message);
        status.details = json!({"group": group, "kind": plural});
        if !name.is_empty() {
            status.details["name"] = json!(name);
        }
        status
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// 410: the resource version is older than what is kept.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, "Expired", message)
    }

    /// 405.
    pub fn method_not_allowed() -> Status {
        Status::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    /// 415 with what would be accepted.
    pub fn unsupported_media_type(accepted: &str) -> Status {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Status::new(415, "UnsupportedMediaType", message)
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>) -> Status {
        Status::new(503, "ServiceUnavailable", message)
    }

    /// The object as it is sent.
    pub fn object(&self) -> Value {
        let mut object = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason,
        });
        if !self.details.is_null() {
            object["details"] = self.details.clone();
        }
        object["code"] = json!(self.code);
        object
    }
}

impl IntoResponse for Status {
    fn into_response(self) -> Response {
        json_response(self.code, &self.object())
    }
}

/// A JSON body. `Value::to_string` is much faster than the generic serializer in a build without optimization.
pub fn json_response(code: u16, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string() + "\n"));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
