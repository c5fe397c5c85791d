//! Ruby: Bundler, RSpec, Rake, Rails, RuboCop where it is configured.

use super::{Check, Detected, Files};

pub(super) fn detect(files: &Files) -> Detected {
    let mut found = Detected::default();
    if !files.has("Gemfile") {
        return found;
    }
    found.setup("bundle install", "Gemfile");
    if let Some(config) = files.first(&[".rubocop.yml"]) {
        found.gate("ruby", Check::Lint, "bundle exec rubocop", config);
    }
    let rspec = files.first(&[".rspec", "spec"]);
    let rake = || {
        let text = files.text("Rakefile");
        let tests = ["TestTask", "task :test", "task test", "Minitest"];
        tests.iter().any(|words| text.contains(words))
    };
    if let Some(because) = rspec {
        found.gate("ruby", Check::Test, "bundle exec rspec", because);
    } else if files.has("test") && files.says("Gemfile", "rails") {
        found.gate(
            "ruby",
            Check::Test,
            "bin/rails test",
            "rails in the Gemfile",
        );
    } else if rake() {
        let because = "the tests in the Rakefile";
        found.gate("ruby", Check::Test, "bundle exec rake test", because);
    }
    found
}
