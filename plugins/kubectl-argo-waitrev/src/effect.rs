//! Whether a push can show in an Application at all. Pure.

use kit::{paths, record::Record, version::Version};
use serde_json::Value;

use crate::{
    view::View,
    wanted::{Wanted, sources},
};

/// The files that a push changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    files: Vec<String>,
}

impl Push {
    /// Reads the lists of a record. `None` where they are not complete, or empty: Argo CD then takes every Application to
    /// be concerned.
    pub fn of(record: &Record) -> Option<Push> {
        if record.0.get("files_complete") != Some(&Value::Bool(true)) {
            return None;
        }
        let mut files = Vec::new();
        for commit in record.0.get("commits")?.as_array()? {
            for list in ["added", "modified", "removed"] {
                for file in commit.get(list)?.as_array()? {
                    files.push(file.as_str()?.to_owned());
                }
            }
        }
        (!files.is_empty()).then_some(Push { files })
    }

    /// Whether the Application is generated from none of the files: a webhook then leaves it alone, and its revision stays
    /// where it is until the next comparison for another reason (argo-cd v3.5.1 util/webhook/webhook.go).
    pub fn misses(&self, view: &View, wanted: &Wanted) -> bool {
        let Some(annotation) = &view.metadata.annotations.manifest_generate_paths else { return false };
        // The annotation does not apply to what is hydrated.
        if view.spec.source_hydrator.is_some() {
            return false;
        }
        let Ok(positions) = wanted.sources(view) else { return false };
        let sources = sources(view, false);
        positions.into_iter().all(|position| {
            let items = paths::items(annotation, &sources[position].path, Version::NEWEST);
            !items.is_empty()
                && !self.files.iter().any(|file| items.iter().any(|item| paths::hits(item, file, Version::NEWEST)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(annotation: Option<&str>) -> View {
        serde_json::from_value(json!({
            "metadata": {"annotations": {"argocd.argoproj.io/manifest-generate-paths": annotation}},
            "spec": {"source": {"repoURL": "https://h/r", "path": "apps/a"}},
        }))
        .unwrap()
    }

    fn push(record: Value) -> Option<Push> {
        Push::of(&Record(record.as_object().unwrap().clone()))
    }

    fn record(files: &[&str]) -> Value {
        json!({"files_complete": true, "commits": [{"added": [], "modified": files, "removed": []}]})
    }

    #[test]
    fn only_a_filtered_application_can_be_missed() {
        let push = push(record(&["apps/b/x.yaml"])).unwrap();
        let wanted = Wanted::default();
        for (annotation, missed) in
            [(None, false), (Some(""), false), (Some("."), true), (Some(".;/apps/b"), false), (Some("/"), false)]
        {
            assert_eq!(push.misses(&view(annotation), &wanted), missed, "{annotation:?}");
        }
    }

    #[test]
    fn lists_that_are_not_complete_say_nothing() {
        assert_eq!(push(record(&[])), None);
        assert_eq!(push(json!({"files_complete": false, "commits": []})), None);
        assert_eq!(push(json!({"commits": [{"added": ["a"], "modified": [], "removed": []}]})), None);
        assert_eq!(push(json!({"files_complete": true, "commits": [{"added": ["a"]}]})), None);
    }
}
