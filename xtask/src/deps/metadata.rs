//! What the rules need of `cargo metadata`'s answer.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;

/// All packages of the build graph.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(super) packages: Vec<Package>,
}

/// One package as its manifest declares it.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) is_ours: bool,
    pub(super) dependencies: Vec<Dependency>,
}

/// One declared dependency.
#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) is_dev: bool,
}

impl Metadata {
    /// Reads the answer of `cargo metadata --format-version 1`.
    pub(crate) fn parse(json: &str) -> Result<Self> {
        let root: Value =
            serde_json::from_str(json).context("`cargo metadata` answered with broken JSON")?;
        let ours: BTreeSet<&str> = list(&root, "workspace_members")?
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let packages = list(&root, "packages")?
            .iter()
            .map(|package| Package::parse(package, &ours))
            .collect::<Result<_>>()?;
        Ok(Self { packages })
    }

    pub(super) fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_ours)
    }

    pub(super) fn is_ours(&self, name: &str) -> bool {
        self.ours().any(|package| package.name == name)
    }
}

impl Package {
    fn parse(value: &Value, ours: &BTreeSet<&str>) -> Result<Self> {
        Ok(Self {
            name: text(value, "name")?.to_owned(),
            is_ours: ours.contains(text(value, "id")?),
            dependencies: list(value, "dependencies")?
                .iter()
                .map(Dependency::parse)
                .collect::<Result<_>>()?,
        })
    }
}

impl Dependency {
    fn parse(value: &Value) -> Result<Self> {
        Ok(Self {
            name: text(value, "name")?.to_owned(),
            is_dev: value["kind"].as_str() == Some("dev"),
        })
    }
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>> {
    value[field]
        .as_array()
        .with_context(|| format!("`cargo metadata` answered without the list `{field}`"))
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    value[field]
        .as_str()
        .with_context(|| format!("`cargo metadata` answered without the text `{field}`"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::Metadata;
    use serde_json::{Value, json};

    /// A crate of ours, with its dependencies and dev-dependencies.
    pub(in crate::deps) fn ours(name: &str, normal: &[&str], dev: &[&str]) -> Value {
        let kinds = [(Value::Null, normal), (json!("dev"), dev)];
        let dependencies: Vec<Value> = kinds
            .into_iter()
            .flat_map(|(kind, names)| {
                names
                    .iter()
                    .map(move |name| json!({ "name": name, "kind": kind }))
            })
            .collect();
        json!({
            "id": format!("path+file:///wood/{name}"),
            "name": name,
            "dependencies": dependencies,
        })
    }

    /// A crate of somebody else.
    pub(in crate::deps) fn foreign(name: &str) -> Value {
        json!({
            "id": format!("registry+https://example.org#{name}"),
            "name": name,
            "dependencies": [],
        })
    }

    /// What cargo would answer for these packages.
    pub(in crate::deps) fn metadata(packages: &[Value]) -> Metadata {
        let members: Vec<&Value> = packages
            .iter()
            .map(|package| &package["id"])
            .filter(|id| id.as_str().is_some_and(|id| id.starts_with("path+")))
            .collect();
        let answer = json!({ "packages": packages, "workspace_members": members });
        Metadata::parse(&answer.to_string()).unwrap()
    }

    #[test]
    fn an_answer_of_another_shape_is_an_error() {
        let error = Metadata::parse("{}").unwrap_err();
        assert!(error.to_string().contains("workspace_members"), "{error}");
    }
}
