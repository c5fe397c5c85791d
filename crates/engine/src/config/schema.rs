//! The JSON schema of `woodward.yaml`, for editors. Generated from the types that read the file.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::file::File;

/// The schema as pretty JSON, as `docs/woodward.schema.json` holds it.
pub fn schema() -> String {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<File>().to_value();
    if let Some(definitions) = schema["definitions"].as_object_mut() {
        for (name, definition) in definitions {
            definition["title"] = json!(name);
            add_snake_case(definition, &format!("#/definitions/{name}"));
        }
    }
    drop_null_defaults(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

/// An editor must not mark `max_concurrent` as unknown.
fn add_snake_case(definition: &mut Value, pointer: &str) {
    let properties = definition.get_mut("properties");
    let Some(properties) = properties.and_then(Value::as_object_mut) else {
        return;
    };
    let aliases: Map<String, Value> = properties
        .keys()
        .filter(|key| key.contains(|c: char| c.is_ascii_uppercase()))
        .map(|key| {
            let alias = json!({
                "description": format!("The same as `{key}`."),
                "allOf": [{ "$ref": format!("{pointer}/properties/{key}") }],
            });
            (snake(key), alias)
        })
        .collect();
    properties.extend(aliases);
}

fn snake(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// "Nothing" is what a missing key means anyway.
fn drop_null_defaults(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| key != "default" || !value.is_null());
            if let Some(default) = map.get_mut("default") {
                drop_nulls(default);
            }
            map.values_mut().for_each(drop_null_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null_defaults),
        _ => {}
    }
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(drop_nulls);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::camel;
    use super::*;

    #[test]
    fn the_two_ways_to_write_a_key_are_inverse() {
        for key in ["maxConcurrent", "fixCyclesTotal", "agent"] {
            assert_eq!(camel(&snake(key)), key);
        }
    }

    #[test]
    fn the_schema_holds_no_empty_parts() {
        let schema = schema();
        assert!(!schema.contains(": null"), "{schema}");
    }

    #[test]
    fn every_key_says_what_it_is_for() {
        fn check(schema: &Value, path: &str) -> usize {
            let Some(properties) = schema["properties"].as_object() else {
                return 0;
            };
            for (key, property) in properties {
                assert!(property["description"].is_string(), "{path}.{key}");
            }
            properties.len()
        }
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        let definitions = schema["definitions"].as_object().unwrap();
        let keys: usize = definitions
            .iter()
            .map(|(name, part)| check(part, name))
            .sum();
        assert!(keys > 40, "{keys}");
        assert!(check(&schema, "top") > 15);
    }
}
