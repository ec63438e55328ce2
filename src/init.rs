//! The role `init`: what it runs with, and what it prints of files, without a server.

use std::error::Error;
use std::fmt;
use std::time::SystemTime;

use edge_syncer_init::kinds::{InitTarget, InitTemplate};
use edge_syncer_init::objects::{Data, SourceError, of_source};
pub use edge_syncer_init::run;
use edge_syncer_init::{At, StoredError};
use gotemplate::objects::{self, Object, of_text};
use gotemplate::yaml::DocumentError;
use kube_lite::files;
use kube_lite::logging::LogFormat;
use log::LevelFilter;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What `init` is to run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// What the role runs with.
    pub settings: edge_syncer_init::Settings,
    /// The level of our own log lines.
    pub verbosity: LevelFilter,
    /// What log lines look like.
    pub format: LogFormat,
}

/// What `init render` is to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Render {
    /// Where target and templates are.
    pub from: From,
    /// Which target, if there are several.
    pub target: Option<String>,
    /// The workspace.
    pub data: Data,
    /// Whether JSON is printed, as one list, in the place of YAML documents.
    pub json: bool,
}

/// Where target and templates are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// Files, where `-` is stdin.
    Files(Vec<String>),
    /// A config workspace.
    Server(Box<At>),
}

/// Why nothing is printed.
#[derive(Debug)]
pub enum RenderError {
    /// The command line has to be corrected.
    Unusable(String),
    /// The config workspace does not give the target.
    Stored {
        /// The workspace.
        workspace: String,
        /// What is wrong.
        error: StoredError,
    },
    /// A file is no YAML, or a document of it no object.
    File {
        /// The file.
        file: String,
        /// What is wrong.
        error: DocumentError,
    },
    /// An object of a file is no InitTarget or InitTemplate.
    Object {
        /// The file.
        file: String,
        /// Its kind and name.
        object: String,
        /// What is wrong.
        why: String,
    },
    /// A source of the target gives no objects.
    Source {
        /// The file of the template, or of the target; or their workspace.
        file: String,
        /// The target.
        target: String,
        /// The index of the source.
        index: usize,
        /// What is wrong.
        error: Box<SourceError>,
    },
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => f.write_str(why),
            Self::Stored { workspace, error } => write!(f, "{workspace}: {error}"),
            Self::File { file, error } => write!(f, "{file}: {error}"),
            Self::Object { file, object, why } => write!(f, "{file}: {object}: {why}"),
            Self::Source {
                file,
                target,
                index,
                error,
            } => write!(f, "{file}: InitTarget {target}, sources[{index}]: {error}"),
        }
    }
}

impl Error for RenderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Stored {
                error: StoredError::Access(error),
                ..
            } => Some(error),
            _ => None,
        }
    }
}

/// An object of a file.
struct Found<T> {
    file: String,
    object: T,
}

/// All that is of use in the files.
#[derive(Default)]
struct Contents {
    targets: Vec<Found<InitTarget>>,
    templates: Vec<Found<InitTemplate>>,
}

/// The objects of a target for a workspace, in the order in which they are created.
pub async fn render(settings: &Render, now: SystemTime) -> Result<String, RenderError> {
    let mut contents = Contents::default();
    match &settings.from {
        From::Files(files) => {
            for file in files {
                contents.add(file, &read(file)?)?;
            }
        }
        From::Server(at) => contents = Contents::stored(at, settings.target.as_deref()).await?,
    }
    let target = contents.chosen(settings.target.as_deref())?;
    let objects = contents.objects(target, &settings.data, now)?;
    Ok(printed(objects, settings.json))
}

fn read(file: &str) -> Result<String, RenderError> {
    let text = files::read_text_or_stdin(file);
    text.map_err(|error| RenderError::Unusable(format!("--target {file:?}: cannot be read: {error}")))
}

impl Contents {
    /// What a config workspace has of one target.
    async fn stored(at: &At, target: Option<&str>) -> Result<Self, RenderError> {
        let workspace = at.config_workspace.name().to_owned();
        let found = edge_syncer_init::stored(at, target).await;
        let found = found.map_err(|error| RenderError::Stored {
            workspace: workspace.clone(),
            error,
        })?;
        let template = |object| Found {
            file: workspace.clone(),
            object,
        };
        Ok(Self {
            templates: found.templates.into_iter().map(template).collect(),
            targets: vec![Found {
                file: workspace.clone(),
                object: found.target,
            }],
        })
    }

    /// Adds the objects of a file. Those of other kinds are not needed.
    fn add(&mut self, file: &str, text: &str) -> Result<(), RenderError> {
        let found = of_text(text).map_err(|error| RenderError::File {
            file: file.to_owned(),
            error,
        })?;
        for object in found {
            if object.group() != "initialization.kcp.io" {
                continue;
            }
            match object.kind() {
                "InitTarget" => self.targets.push(parsed(file, object)?),
                "InitTemplate" => self.templates.push(parsed(file, object)?),
                _ => {}
            }
        }
        once_each(&self.targets, |target| &target.metadata.name, "InitTarget")?;
        once_each(&self.templates, |template| &template.metadata.name, "InitTemplate")
    }

    /// The target that is meant.
    fn chosen(&self, name: Option<&str>) -> Result<&Found<InitTarget>, RenderError> {
        let names = || {
            let names: Vec<&str> = self.targets.iter().map(|found| &*found.object.metadata.name).collect();
            names.join(", ")
        };
        match (name, self.targets.as_slice()) {
            (_, []) => Err(RenderError::Unusable("there is no InitTarget in the files".to_owned())),
            (None, [only]) => Ok(only),
            (None, _) => Err(RenderError::Unusable(format!(
                "the files have several InitTargets, choose one with --target-name: {}",
                names()
            ))),
            (Some(name), all) => {
                let found = all.iter().find(|found| found.object.metadata.name == name);
                found
                    .ok_or_else(|| RenderError::Unusable(format!("--target-name {name:?}: the files have {}", names())))
            }
        }
    }

    fn objects(&self, found: &Found<InitTarget>, data: &Data, now: SystemTime) -> Result<Vec<Object>, RenderError> {
        let template = |name: &str| self.templates.iter().find(|found| found.object.metadata.name == name);
        let target = &found.object;
        let mut all = Vec::new();
        for (index, source) in target.spec.sources.iter().enumerate() {
            let named = |name: &str| template(name).map(|found| &found.object);
            let objects = of_source(target, index, named, data, now).map_err(|error| {
                let template = source.template.as_ref().and_then(|source| template(&source.name));
                RenderError::Source {
                    file: template.map_or(&found.file, |template| &template.file).clone(),
                    target: target.metadata.name.clone(),
                    index,
                    error: Box::new(error),
                }
            })?;
            all.extend(objects);
        }
        Ok(all)
    }
}

fn parsed<T: DeserializeOwned>(file: &str, object: Object) -> Result<Found<T>, RenderError> {
    let name = object.fields.get("metadata").and_then(|metadata| metadata.get("name"));
    let named = format!(
        "{} {}",
        object.kind(),
        name.and_then(Value::as_str).unwrap_or("without a name")
    );
    let (file, fields) = (file.to_owned(), object.fields);
    match serde_json::from_value(Value::Object(fields)) {
        Ok(object) => Ok(Found { file, object }),
        Err(error) => Err(RenderError::Object {
            file,
            object: named,
            why: error.to_string(),
        }),
    }
}

/// Of two with one name nobody can know which is meant.
fn once_each<T>(all: &[Found<T>], name: impl Fn(&T) -> &String, kind: &str) -> Result<(), RenderError> {
    for (index, found) in all.iter().enumerate() {
        let own = name(&found.object);
        if let Some(other) = all[..index].iter().find(|other| name(&other.object) == own) {
            let (file, object) = (found.file.clone(), format!("{kind} {own}"));
            let why = format!("is in {} already", other.file);
            return Err(RenderError::Object { file, object, why });
        }
    }
    Ok(())
}

fn printed(objects: Vec<Object>, json: bool) -> String {
    let objects: Vec<Value> = objects.into_iter().map(|object| Value::Object(object.fields)).collect();
    objects::printed(&objects, json)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TARGET: &str = "kind: InitTarget\napiVersion: initialization.kcp.io/v1alpha1\nmetadata: {name: dev}\nspec:\n  \
                          workspaceTypeRef: {path: '', name: dev}\n  sources: [{template: {name: base}}]\n";

    fn template(text: &str) -> String {
        let spec = json!({"template": text});
        format!(
            "---\nkind: InitTemplate\napiVersion: initialization.kcp.io/v1alpha1\nmetadata: {{name: base}}\nspec: {spec}\n"
        )
    }

    /// What is printed for these files, each with its name.
    fn check(files: &[(&str, &str)], name: Option<&str>, json: bool) -> Result<String, String> {
        let data = Data {
            cluster_name: "2abc".to_owned(),
            cluster_path: "root:org".to_owned(),
        };
        let run = || {
            let mut contents = Contents::default();
            for (file, text) in files {
                contents.add(file, text)?;
            }
            let target = contents.chosen(name)?;
            let objects = contents.objects(target, &data, SystemTime::UNIX_EPOCH)?;
            Ok(printed(objects, json))
        };
        run().map_err(|error: RenderError| error.to_string())
    }

    #[test]
    fn prints_objects_in_the_order_in_which_they_are_created() {
        let text = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: '{{ .ClusterName }}', namespace: a}\ndata: {a: \"yes\", b: \"x\\ny\\n\"}\n\
                    ---\nkind: Namespace\napiVersion: v1\nmetadata: {name: a}\n";
        let expected = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n---\napiVersion: v1\ndata:\n  a: \"yes\"\n  b: |\n    x\n    y\n\
                        kind: ConfigMap\nmetadata:\n  name: 2abc\n  namespace: a\n";
        let files = [("a.yaml", TARGET), ("b.yaml", &template(text))];
        assert_eq!(check(&files, None, false).as_deref(), Ok(expected));
        let found: Value = serde_json::from_str(&check(&files, Some("dev"), true).unwrap()).unwrap();
        assert_eq!(found["kind"], "List");
        assert_eq!(found["items"][0]["kind"], "Namespace");
        assert_eq!(found["items"][1]["data"]["a"], "yes");
    }

    /// Files, the target that is asked for, and what is said.
    type Row<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, &'a str);

    #[test]
    fn what_is_wrong_has_its_file_and_place() {
        let other = TARGET.replace("name: dev}\nspec", "name: other}\nspec");
        let two = format!("{TARGET}---\n{other}");
        let fails = template("a\n  {{ fail \"no\" }}");
        let unknown = TARGET.replace("[{template: {name: base}}]", "[{}]");
        let bare = TARGET.replace("spec", "none");
        let rows: [Row<'_>; 10] = [
            (&[("a", "")], None, "there is no InitTarget in the files"),
            (
                &[("a", &two)],
                None,
                "the files have several InitTargets, choose one with --target-name: dev, other",
            ),
            (
                &[("a", &two)],
                Some("x"),
                "--target-name \"x\": the files have dev, other",
            ),
            (
                &[("a", TARGET)],
                None,
                "a: InitTarget dev, sources[0]: there is no InitTemplate base",
            ),
            (
                &[("a", TARGET), ("b", &fails)],
                None,
                "b: InitTarget dev, sources[0]: template base, line 2, column 6: executing \"base\" at <fail \"no\">: error calling fail: no",
            ),
            (
                &[("a", &unknown)],
                None,
                "a: InitTarget dev, sources[0]: unknown kind of source: only template is known",
            ),
            (&[("a", "- x")], None, "a: document 1, line 1: is a list, not a mapping"),
            (&[("a", &bare)], None, "a: InitTarget dev: missing field `spec`"),
            (
                &[("a", TARGET), ("b", TARGET)],
                None,
                "b: InitTarget dev: is in a already",
            ),
            (
                &[("a", TARGET), ("b", &template("a: b: c"))],
                None,
                "b: InitTarget dev, sources[0]: what template base renders, document 1, line 1: mapping values are not allowed in this context",
            ),
        ];
        for (files, name, expected) in rows {
            assert_eq!(check(files, name, false), Err(expected.to_owned()));
        }
    }
}
