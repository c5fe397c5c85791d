//! What a file declares.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::{Node, Parser};

use crate::Language;

/// Files above this size are not read.
pub const BYTES_MAX: usize = 256 << 10;
/// The most declarations of one file.
const SYMBOLS_MAX: usize = 2_000;
/// How deep declarations are looked for in others.
const DEPTH_MAX: usize = 24;

/// What kind of thing a declaration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Something that is called.
    Function,
    /// A type, a constant: something that is named.
    Named,
}

/// A declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// The type that it belongs to.
    pub owner: Option<String>,
    /// What kind of thing it is.
    pub kind: Kind,
    /// All of it that its users depend on, without needless space.
    pub signature: String,
    /// The lines of the signature, from 0.
    pub lines: Range<u32>,
}

/// A declaration that is no longer what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vanished {
    /// What it was.
    pub symbol: Symbol,
    /// Whether nothing of that name is left there.
    pub removed: bool,
}

/// What of a declaration its users depend on.
#[derive(Clone, Copy)]
enum Signature {
    /// Everything before its body.
    Head,
    /// All of it: fields and variants are part of it.
    Whole,
}

/// How a kind of node is read.
struct Rule {
    kind: Kind,
    signature: Signature,
}

const CALLED: Rule = Rule {
    kind: Kind::Function,
    signature: Signature::Head,
};
const TYPE: Rule = Rule {
    kind: Kind::Named,
    signature: Signature::Whole,
};
const HEAD: Rule = Rule {
    kind: Kind::Named,
    signature: Signature::Head,
};

fn rule(language: Language, node: &str) -> Option<&'static Rule> {
    Some(match (language, node) {
        (Language::Rust, "function_item" | "function_signature_item") => &CALLED,
        (Language::Rust, "struct_item" | "enum_item" | "union_item" | "type_item") => &TYPE,
        (Language::Rust, "trait_item" | "const_item" | "static_item") => &HEAD,
        (
            Language::TypeScript | Language::Tsx,
            "function_declaration"
            | "generator_function_declaration"
            | "function_signature"
            | "method_definition"
            | "method_signature"
            | "abstract_method_signature",
        ) => &CALLED,
        (
            Language::TypeScript | Language::Tsx,
            "interface_declaration" | "type_alias_declaration" | "enum_declaration",
        ) => &TYPE,
        (
            Language::TypeScript | Language::Tsx,
            "class_declaration" | "abstract_class_declaration",
        ) => &HEAD,
        (Language::Python, "function_definition") => &CALLED,
        (Language::Python, "class_definition") => &HEAD,
        (Language::Go, "function_declaration" | "method_declaration" | "method_elem") => &CALLED,
        (Language::Go, "type_spec" | "type_alias") => &TYPE,
        _ => return None,
    })
}

/// Nodes that hold declarations.
fn holds_others(node: &str) -> bool {
    matches!(
        node,
        "source_file"
            | "program"
            | "module"
            | "mod_item"
            | "internal_module"
            | "ambient_declaration"
            | "statement_block"
            | "declaration_list"
            | "impl_item"
            | "trait_item"
            | "foreign_mod_item"
            | "export_statement"
            | "expression_statement"
            | "lexical_declaration"
            | "class_declaration"
            | "abstract_class_declaration"
            | "class_body"
            | "decorated_definition"
            | "class_definition"
            | "block"
            | "type_declaration"
            | "interface_type"
    )
}

thread_local! {
    static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
}

/// What a text declares, in order.
pub fn outline(language: Language, text: &[u8]) -> Vec<Symbol> {
    if text.len() > BYTES_MAX {
        return Vec::new();
    }
    let tree = PARSER.with_borrow_mut(|parser| {
        parser.set_language(&language.grammar()).ok()?;
        parser.parse(text, None)
    });
    let Some(tree) = tree else {
        return Vec::new();
    };
    let mut reader = Reader {
        language,
        text,
        found: Vec::new(),
    };
    reader.read(tree.root_node(), None, 0);
    reader.found
}

struct Reader<'a> {
    language: Language,
    text: &'a [u8],
    found: Vec<Symbol>,
}

impl Reader<'_> {
    fn read(&mut self, node: Node<'_>, owner: Option<&str>, depth: usize) {
        if depth > DEPTH_MAX || self.found.len() >= SYMBOLS_MAX {
            return;
        }
        let kind = node.kind();
        if let Some(rule) = rule(self.language, kind) {
            self.declare(node, rule, owner);
        } else if kind == "variable_declarator" {
            self.declare_closure(node, owner);
        }
        if !holds_others(kind) {
            return;
        }
        let own = self.owner(node);
        let owner = own.as_deref().or(owner);
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.read(child, owner, depth + 1);
        }
    }

    /// The type whose members are inside a node.
    fn owner(&self, node: Node<'_>) -> Option<String> {
        let field = match node.kind() {
            "impl_item" => "type",
            "trait_item"
            | "class_declaration"
            | "abstract_class_declaration"
            | "class_definition" => "name",
            _ => return None,
        };
        let name = self.slice(node.child_by_field_name(field)?);
        // `Cart<T>` is about `Cart`.
        Some(name.split('<').next().unwrap_or(&name).trim().to_owned())
    }

    fn declare(&mut self, node: Node<'_>, rule: &Rule, owner: Option<&str>) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let end = match rule.signature {
            Signature::Whole => node.end_byte(),
            Signature::Head => {
                let body = node
                    .child_by_field_name("body")
                    .or_else(|| node.child_by_field_name("value"));
                body.map_or(node.end_byte(), |body| body.start_byte())
            }
        };
        let receiver = node
            .child_by_field_name("receiver")
            .and_then(|receiver| self.receiver(receiver));
        let owner = receiver.as_deref().or(owner);
        self.add(name, node.start_byte()..end, rule.kind, owner);
    }

    /// `const total = (cart) => …`
    fn declare_closure(&mut self, node: Node<'_>, owner: Option<&str>) {
        let value = node.child_by_field_name("value");
        let name = node.child_by_field_name("name");
        if let (Some(value), Some(name)) = (value, name)
            && matches!(value.kind(), "arrow_function" | "function_expression")
        {
            let body = value.child_by_field_name("body");
            let end = body.map_or(node.end_byte(), |body| body.start_byte());
            self.add(name, node.start_byte()..end, Kind::Function, owner);
        }
    }

    /// The type of a method in Go: `(c *Cart)`.
    fn receiver(&self, node: Node<'_>) -> Option<String> {
        let text = self.slice(node);
        let inner = text.trim_matches(|c| c == '(' || c == ')');
        let name = inner.rsplit([' ', '*']).next()?;
        let name = name.split('[').next()?;
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn add(&mut self, name: Node<'_>, bytes: Range<usize>, kind: Kind, owner: Option<&str>) {
        let line = |at: usize| {
            let before = self.text.get(..at).unwrap_or(self.text);
            before.iter().filter(|byte| **byte == b'\n').count()
        };
        let first = name.start_position().row - (line(name.start_byte()) - line(bytes.start));
        let text = self.text.get(bytes).unwrap_or_default();
        let breaks = text
            .trim_ascii_end()
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        let number = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
        self.found.push(Symbol {
            name: self.slice(name),
            owner: owner.map(str::to_owned),
            kind,
            signature: plain(text),
            lines: number(first)..number(first + breaks + 1),
        });
    }

    fn slice(&self, node: Node<'_>) -> String {
        let bytes = self.text.get(node.byte_range()).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// Without needless space: how a signature is laid out does not matter to its users.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let glued = out
            .chars()
            .last()
            .zip(word.chars().next())
            .is_some_and(|(a, b)| is_wordy(a) && is_wordy(b));
        if glued {
            out.push(' ');
        }
        out.push_str(word);
    }
    // A list laid out over several lines ends with a comma.
    out.replace(",)", ")").replace(",}", "}").replace(",>", ">")
}

fn is_wordy(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The declarations that are no longer there as they were.
pub fn vanished(old: &[Symbol], new: &[Symbol]) -> Vec<Vanished> {
    let mut left: BTreeMap<(Option<&str>, &str), Vec<&str>> = BTreeMap::new();
    for symbol in new {
        let key = (symbol.owner.as_deref(), symbol.name.as_str());
        left.entry(key).or_default().push(&symbol.signature);
    }
    let is_same = |symbol: &Symbol| {
        let key = (symbol.owner.as_deref(), symbol.name.as_str());
        let known = left.get(&key);
        known.is_some_and(|known| known.contains(&symbol.signature.as_str()))
    };
    let gone = old.iter().filter(|symbol| !is_same(symbol));
    gone.map(|symbol| {
        let key = (symbol.owner.as_deref(), symbol.name.as_str());
        Vanished {
            symbol: symbol.clone(),
            removed: !left.contains_key(&key),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(language: Language, text: &str) -> Vec<String> {
        let found = outline(language, text.as_bytes());
        let shown = |symbol: &Symbol| match &symbol.owner {
            Some(owner) => format!("{owner}.{}", symbol.name),
            None => symbol.name.clone(),
        };
        found.iter().map(shown).collect()
    }

    fn gone(language: Language, old: &str, new: &str) -> Vec<(String, bool)> {
        let read = |text: &str| outline(language, text.as_bytes());
        let gone = vanished(&read(old), &read(new));
        gone.into_iter()
            .map(|one| (one.symbol.name, one.removed))
            .collect()
    }

    const RUST: &str = "pub struct Cart { items: Vec<u32> }\n\nimpl Cart {\n    /// All of it.\n    pub fn total(\n        &self,\n        vat: u32,\n    ) -> u32 {\n        fn inner() {}\n        self.items.len() as u32 * vat\n    }\n}\n\npub trait Priced { fn price(&self) -> u32; }\nmod deep { pub fn helper() {} }\nconst LIMIT: u32 = 3;\n";

    #[test]
    fn rust_declares() {
        assert_eq!(
            names(Language::Rust, RUST),
            [
                "Cart",
                "Cart.total",
                "Priced",
                "Priced.price",
                "helper",
                "LIMIT"
            ]
        );
        let total = &outline(Language::Rust, RUST.as_bytes())[1];
        assert_eq!(total.signature, "pub fn total(&self,vat:u32)->u32");
        assert_eq!(total.lines, 4..8);
    }

    #[test]
    fn typescript_declares() {
        let text = "export function total(cart: Cart): number { return 1; }\nexport const sum = (a: number, b: number) => a + b;\nexport class Till { open(by: string): void {} }\ninterface Cart { items: string[] }\ntype Id = string;\nconst plain = 3;\n";
        for language in [Language::TypeScript, Language::Tsx] {
            assert_eq!(
                names(language, text),
                ["total", "sum", "Till", "Till.open", "Cart", "Id"]
            );
        }
    }

    #[test]
    fn python_declares() {
        let text = "@cached\ndef total(cart, vat=3):\n    def inner(): pass\n    return 1\n\nclass Till(Base):\n    async def open(self, by):\n        pass\n";
        assert_eq!(
            names(Language::Python, text),
            ["total", "Till", "Till.open"]
        );
    }

    #[test]
    fn go_declares() {
        let text = "package shop\n\ntype Cart struct { items []string }\n\nfunc Total(c Cart) int { return 1 }\n\nfunc (c *Cart) Add(item string) error { return nil }\n";
        assert_eq!(names(Language::Go, text), ["Cart", "Total", "Cart.Add"]);
    }

    #[test]
    fn only_what_users_depend_on_counts() {
        let body = RUST.replace("* vat", "+ vat");
        assert_eq!(gone(Language::Rust, RUST, &body), []);
        let layout = RUST.replace(
            "total(\n        &self,\n        vat: u32,\n    )",
            "total(&self, vat: u32)",
        );
        assert_ne!(layout, RUST);
        assert_eq!(gone(Language::Rust, RUST, &layout), []);
        let changed = RUST.replace("vat: u32", "vat: u64");
        assert_eq!(
            gone(Language::Rust, RUST, &changed),
            [("total".into(), false)]
        );
        let removed = RUST.replace("mod deep { pub fn helper() {} }", "");
        assert_eq!(
            gone(Language::Rust, RUST, &removed),
            [("helper".into(), true)]
        );
        let field = RUST.replace("items: Vec<u32>", "items: Vec<u32>, owner: u8");
        assert_eq!(gone(Language::Rust, RUST, &field), [("Cart".into(), false)]);
    }

    #[test]
    fn what_can_not_be_read_declares_little_and_breaks_nothing() {
        for text in ["fn (", "\u{0}\u{1}\u{2}", "impl {{{{", ""] {
            let _ = outline(Language::Rust, text.as_bytes());
        }
        let deep = "mod a {".repeat(5_000);
        let _ = outline(Language::Rust, deep.as_bytes());
        let large = vec![b'a'; BYTES_MAX + 1];
        assert_eq!(outline(Language::Rust, &large), []);
    }
}
