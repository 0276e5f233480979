//! Label and field selectors.

use serde_json::Value;

use super::{resources::Resource, status::Status};

/// Both selectors of a request.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    labels: Vec<Requirement>,
    /// Path, whether equal, value.
    fields: Vec<(String, bool, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

impl Selector {
    /// Reads `labelSelector` and `fieldSelector`; an empty text selects everything.
    ///
    /// # Errors
    /// 400 as the API server words it.
    pub fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Selector, Status> {
        let labels = split_outside_parentheses(labels)
            .into_iter()
            .map(|text| {
                requirement(text.trim())
                    .ok_or_else(|| Status::bad_request(format!("unable to parse requirement: found '{}'", text.trim())))
            })
            .collect::<Result<_, _>>()?;
        let fields = fields
            .split(',')
            .filter(|text| !text.is_empty())
            .map(|text| field(resource, text))
            .collect::<Result<_, _>>()?;
        Ok(Selector { labels, fields })
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The name, when the selector allows only one.
    pub fn name(&self) -> Option<&str> {
        self.fields.iter().find(|(path, equal, _)| path == "metadata.name" && *equal).map(|(_, _, name)| name.as_str())
    }

    /// Whether an object is selected.
    pub fn matches(&self, object: &Value) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(&object["metadata"]["labels"]))
            && self.fields.iter().all(|(path, equal, value)| (field_value(object, path) == value) == *equal)
    }
}

impl Requirement {
    fn matches(&self, labels: &Value) -> bool {
        let value = |key: &String| labels[key.as_str()].as_str();
        match self {
            Requirement::In(key, values) => value(key).is_some_and(|v| values.iter().any(|w| w == v)),
            Requirement::NotIn(key, values) => value(key).is_none_or(|v| values.iter().all(|w| w != v)),
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::Missing(key) => value(key).is_none(),
        }
    }
}

fn requirement(text: &str) -> Option<Requirement> {
    let key = |text: &str| {
        let text = text.trim();
        let ok = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        ok.then(|| text.to_owned())
    };
    if let Some((k, v)) = text.split_once("!=") {
        return Some(Requirement::NotIn(key(k)?, vec![v.trim().into()]));
    }
    if let Some((k, v)) = text.split_once('=') {
        let v = v.strip_prefix('=').unwrap_or(v);
        return Some(Requirement::In(key(k)?, vec![v.trim().into()]));
    }
    if let Some((head, values)) = text.split_once('(') {
        let values = values.strip_suffix(')')?.split(',').map(|v| v.trim().to_owned()).collect();
        let (k, operator) = head.trim().split_once(char::is_whitespace)?;
        return match operator.trim() {
            "in" => Some(Requirement::In(key(k)?, values)),
            "notin" => Some(Requirement::NotIn(key(k)?, values)),
            _ => None,
        };
    }
    match text.strip_prefix('!') {
        Some(k) => Some(Requirement::Missing(key(k)?)),
        None => Some(Requirement::Exists(key(text)?)),
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut inside = false;
    let parts = text.split(|c| {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        c == ',' && !inside
    });
    parts.filter(|part| !part.trim().is_empty()).collect()
}

fn field(resource: &Resource, text: &str) -> Result<(String, bool, String), Status> {
    let (path, equal, value) = if let Some((path, value)) = text.split_once("!=") {
        (path, false, value)
    } else if let Some((path, value)) = text.split_once('=') {
        (path, true, value.strip_prefix('=').unwrap_or(value))
    } else {
        return Err(Status::bad_request(format!("invalid selector: '{text}'; can't understand '{text}'")));
    };
    let known = match resource.kind {
        "Pod" => path.starts_with("status.") || path.starts_with("spec."),
        "Event" => path.starts_with("involvedObject.") || ["reason", "type", "source"].contains(&path),
        "Secret" => path == "type",
        "Namespace" => path == "status.phase",
        _ => false,
    };
    if !known && path != "metadata.name" && path != "metadata.namespace" {
        return Err(Status::bad_request(format!("field label not supported: {path}")));
    }
    Ok((path.into(), equal, value.into()))
}

fn field_value<'a>(object: &'a Value, path: &str) -> &'a str {
    path.split('.').fold(object, |value, part| &value[part]).as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::resources::by_key;

    fn selects(labels: &str, fields: &str, object: &Value) -> bool {
        let resource = by_key("pods").expect("pods are known");
        Selector::parse(resource, labels, fields).expect("the selector is well formed").matches(object)
    }

    #[test]
    fn label_selectors_follow_kubectl_syntax() {
        let pod = json!({"metadata": {"name": "p", "labels": {"a": "1", "x/y": "z"}}});
        for (labels, expected) in [
            ("", true),
            ("a=1", true),
            ("a==1,x/y=z", true),
            ("a=2", false),
            ("a!=2,b!=2", true),
            ("a", true),
            ("!b,a", true),
            ("!a", false),
            ("a in (1, 2),x/y notin (q)", true),
            ("a notin (1)", false),
        ] {
            assert_eq!(selects(labels, "", &pod), expected, "{labels}");
        }
    }

    #[test]
    fn field_selectors_compare_the_fields_that_the_resource_has() {
        let pod = json!({"metadata": {"name": "p"}, "status": {"phase": "Running"}});
        assert!(selects("", "metadata.name=p,status.phase!=Failed", &pod));
        assert!(!selects("", "metadata.name=q", &pod));
        let resource = by_key("applications.argoproj.io").expect("Applications are known");
        let refused = Selector::parse(resource, "", "status.phase=x").expect_err("not a field of Applications");
        assert_eq!((refused.code, refused.message.as_str()), (400, "field label not supported: status.phase"));
    }
}
