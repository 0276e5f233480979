//! Bodies in `application/vnd.kubernetes.protobuf`, which `kubectl create secret` and its siblings send.
//!
//! Only the messages that those commands make are known; a body is read into the same JSON that would have been sent
//! otherwise. (kubernetes staging/src/k8s.io/api/core/v1/generated.proto, rbac/v1/generated.proto,
//! staging/src/k8s.io/apimachinery/pkg/runtime/generated.proto)

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

/// What stands before the message.
const MAGIC: &[u8] = b"k8s\0";

/// How a field is written in JSON.
#[derive(Clone, Copy)]
enum Type {
    Text,
    Bool,
    /// `map<string, string>`.
    Texts,
    /// `map<string, bytes>`: base64 in JSON.
    Bytes,
    TextList,
    Message(&'static [Field]),
    List(&'static [Field]),
}

type Field = (u64, &'static str, Type);

const METADATA: &[Field] = &[
    (1, "name", Type::Text),
    (2, "generateName", Type::Text),
    (3, "namespace", Type::Text),
    (11, "labels", Type::Texts),
    (12, "annotations", Type::Texts),
    (14, "finalizers", Type::TextList),
];
const RULE: &[Field] = &[
    (1, "verbs", Type::TextList),
    (2, "apiGroups", Type::TextList),
    (3, "resources", Type::TextList),
    (4, "resourceNames", Type::TextList),
    (5, "nonResourceURLs", Type::TextList),
];
const SUBJECT: &[Field] =
    &[(1, "kind", Type::Text), (2, "apiGroup", Type::Text), (3, "name", Type::Text), (4, "namespace", Type::Text)];
const ROLE_REF: &[Field] = &[(1, "apiGroup", Type::Text), (2, "kind", Type::Text), (3, "name", Type::Text)];

const META: Field = (1, "metadata", Type::Message(METADATA));
const SECRET: &[Field] = &[
    META,
    (2, "data", Type::Bytes),
    (3, "type", Type::Text),
    (4, "stringData", Type::Texts),
    (5, "immutable", Type::Bool),
];
const CONFIG_MAP: &[Field] =
    &[META, (2, "data", Type::Texts), (3, "binaryData", Type::Bytes), (4, "immutable", Type::Bool)];
const ATTRIBUTES: &[Field] = &[
    (1, "namespace", Type::Text),
    (2, "verb", Type::Text),
    (3, "group", Type::Text),
    (4, "version", Type::Text),
    (5, "resource", Type::Text),
    (6, "subresource", Type::Text),
    (7, "name", Type::Text),
];
const ACCESS_REVIEW: &[Field] =
    &[META, (2, "spec", Type::Message(&[(1, "resourceAttributes", Type::Message(ATTRIBUTES))]))];
const METADATA_ONLY: &[Field] = &[META];
const ROLE: &[Field] = &[META, (2, "rules", Type::List(RULE))];
const BINDING: &[Field] = &[META, (2, "subjects", Type::List(SUBJECT)), (3, "roleRef", Type::Message(ROLE_REF))];

/// The object in a body; `None` when it is of no known kind or broken.
pub fn decode(body: &[u8]) -> Option<Value> {
    const TYPE_META: &[Field] = &[(1, "apiVersion", Type::Text), (2, "kind", Type::Text)];
    let unknown = fields(body.strip_prefix(MAGIC)?)?;
    let bytes = |wanted: u64| unknown.iter().find(|(number, _)| *number == wanted).map(|(_, raw)| raw);
    let mut object = message(bytes(1)?.bytes()?, TYPE_META)?;
    let known = match object["kind"].as_str()? {
        "Secret" => SECRET,
        "ConfigMap" => CONFIG_MAP,
        "Namespace" | "ServiceAccount" => METADATA_ONLY,
        "SelfSubjectAccessReview" => ACCESS_REVIEW,
        "Role" | "ClusterRole" => ROLE,
        "RoleBinding" | "ClusterRoleBinding" => BINDING,
        _ => return None,
    };
    let contents = message(bytes(2)?.bytes()?, known)?;
    for (field, value) in contents.as_object()? {
        object[field.as_str()] = value.clone();
    }
    Some(object)
}

enum Raw<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Raw<'a> {
    fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Raw::Bytes(bytes) => Some(bytes),
            Raw::Number(_) => None,
        }
    }

    fn text(&self) -> Option<Value> {
        self.bytes().map(|bytes| json!(String::from_utf8_lossy(bytes)))
    }
}

fn message(bytes: &[u8], known: &[Field]) -> Option<Value> {
    let mut object = Map::new();
    for (number, raw) in fields(bytes)? {
        let Some((_, name, kind)) = known.iter().find(|(wanted, ..)| *wanted == number) else { continue };
        match kind {
            Type::Text => {
                // An empty text is left out, as in JSON.
                let text = raw.text()?;
                if text != "" {
                    object.insert((*name).into(), text);
                }
            }
            Type::Bool => {
                object.insert((*name).into(), json!(matches!(raw, Raw::Number(1))));
            }
            Type::Texts | Type::Bytes => {
                let map = object.entry(*name).or_insert_with(|| json!({}));
                let (key, value) = entry(raw.bytes()?)?;
                let value = match kind {
                    Type::Bytes => STANDARD.encode(value),
                    _ => String::from_utf8_lossy(value).into_owned(),
                };
                map[key] = json!(value);
            }
            Type::TextList => push(&mut object, name, raw.text()?)?,
            Type::List(known) => push(&mut object, name, message(raw.bytes()?, known)?)?,
            Type::Message(known) => {
                object.insert((*name).into(), message(raw.bytes()?, known)?);
            }
        }
    }
    Some(Value::Object(object))
}

fn push(object: &mut Map<String, Value>, name: &str, value: Value) -> Option<()> {
    object.entry(name).or_insert_with(|| json!([])).as_array_mut()?.push(value);
    Some(())
}

fn entry(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (mut key, mut value) = (String::new(), &[][..]);
    for (number, raw) in fields(bytes)? {
        match number {
            1 => key = String::from_utf8_lossy(raw.bytes()?).into_owned(),
            _ => value = raw.bytes()?,
        }
    }
    Some((key, value))
}

/// The fields of a message in their order.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Raw<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let raw = match key & 7 {
            0 => Raw::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Raw::Bytes(value)
            }
            _ => return None,
        };
        found.push((key >> 3, raw));
    }
    Some(found)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
