//! PHP: Composer, PHPUnit, PHPStan where it is configured.

use super::{Check, Detected, Files};

pub(super) fn detect(files: &Files) -> Detected {
    let mut found = Detected::default();
    if !files.has("composer.json") {
        return found;
    }
    found.setup("composer install --no-interaction", "composer.json");
    let stan = files.first(&["phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon"]);
    if let Some(config) = stan {
        let command = "vendor/bin/phpstan analyse --no-progress";
        found.gate("php", Check::Types, command, config);
    }
    let composer: serde_json::Value =
        serde_json::from_str(files.text("composer.json")).unwrap_or_default();
    let unit = files.first(&["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"]);
    if !composer["scripts"]["test"].is_null() {
        let because = "scripts.test in composer.json";
        found.gate("php", Check::Test, "composer run test", because);
    } else if let Some(config) = unit {
        found.gate("php", Check::Test, "vendor/bin/phpunit", config);
    }
    found
}
