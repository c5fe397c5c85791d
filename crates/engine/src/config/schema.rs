//! The JSON schema of `woodward.yaml`, for editors. Generated from the types that read the file.

use schemars::generate::SchemaSettings;

use super::file::File;

/// The schema as pretty JSON, as `docs/woodward.schema.json` holds it.
pub fn schema() -> String {
    let schema = SchemaSettings::draft07()
        .into_generator()
        .into_root_schema_for::<File>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
