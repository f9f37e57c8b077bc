//! Reads the modules of a crate from its sources.

use crate::SourceFile;
use crate::syntax::{attributes, impl_attributes, is_test};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, Item, UseTree, Visibility};

/// All modules of a library or program, starting with the root.
#[derive(Default)]
pub struct Tree {
    pub files: Vec<File>,
    pub modules: Vec<Module>,
    /// Macros that `#[macro_export]` places at the root: their names and files.
    pub exported_macros: BTreeMap<String, usize>,
}

pub struct File {
    /// Path from the root of the repository.
    pub path: String,
    /// The file that declares its module.
    parent: Option<usize>,
}

#[derive(Default)]
pub struct Module {
    pub parent: Option<usize>,
    pub file: usize,
    pub children: BTreeMap<String, usize>,
    /// The names of the items defined here.
    pub items: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// The paths in the code of this module, outside of its `use` declarations.
    pub mentions: Vec<Mention>,
}

/// One name, or one glob, of a `use` declaration.
pub struct Import {
    pub path: Vec<String>,
    /// Its local name; `None` for a glob.
    pub name: Option<String>,
    /// Whether it has a visibility and therefore re-exports the name.
    pub reexport: bool,
    pub line: usize,
}

pub struct Mention {
    pub path: Vec<String>,
    pub line: usize,
}

impl Tree {
    /// Reads the modules, starting with the file `root`, without modules of test code.
    pub fn read(root: &str, files: &[SourceFile]) -> Result<Self, String> {
        let mut tree = Self::default();
        let directory = root.rsplit_once('/').map_or("", |(directory, _)| directory);
        tree.read_file(root, directory, None, files)?;
        Ok(tree)
    }

    /// Whether the module of the file `inner` is below that of `outer`.
    pub fn is_within(&self, inner: usize, outer: usize) -> bool {
        let parent = self.files[inner].parent;
        parent.is_some_and(|parent| parent == outer || self.is_within(parent, outer))
    }

    /// Reads one file; the modules that it declares are in `directory`.
    fn read_file(
        &mut self,
        path: &str,
        directory: &str,
        parent: Option<usize>,
        files: &[SourceFile],
    ) -> Result<usize, String> {
        let source = files.iter().find(|f| f.path == path);
        let text = source.and_then(SourceFile::text).ok_or(format!("{path}: no such source"))?;
        let syntax = syn::parse_file(text).map_err(|e| format!("{path}: {e}"))?;
        let parent_file = parent.map(|parent| self.modules[parent].file);
        self.files.push(File { path: path.into(), parent: parent_file });
        let file = self.files.len() - 1;
        let mut reader =
            Reader { tree: self, files, at: 0, directory: directory.into(), error: None };
        let module = reader.module(parent, file, &syntax.items);
        reader.error.map_or(Ok(module), Err)
    }
}

/// Visits the syntax of a file.
struct Reader<'a> {
    tree: &'a mut Tree,
    files: &'a [SourceFile],
    /// The current module, and the location of its child modules.
    at: usize,
    directory: String,
    error: Option<String>,
}

impl Reader<'_> {
    fn module(&mut self, parent: Option<usize>, file: usize, items: &[Item]) -> usize {
        self.tree.modules.push(Module { parent, file, ..Module::default() });
        let outer = std::mem::replace(&mut self.at, self.tree.modules.len() - 1);
        items.iter().for_each(|item| self.visit_item(item));
        std::mem::replace(&mut self.at, outer)
    }

    fn here(&mut self) -> &mut Module {
        &mut self.tree.modules[self.at]
    }

    fn child(&mut self, item: &syn::ItemMod) {
        let name = item.ident.to_string();
        let directory = format!("{}/{name}", self.directory);
        let child = match &item.content {
            Some((_, items)) => {
                let outer = std::mem::replace(&mut self.directory, directory);
                let file = self.here().file;
                let child = self.module(Some(self.at), file, items);
                self.directory = outer;
                Ok(child)
            }
            None => {
                let flat = format!("{directory}.rs");
                let is_flat = self.files.iter().any(|f| f.path == flat);
                let path = if is_flat { flat } else { format!("{directory}/mod.rs") };
                self.tree.read_file(&path, &directory, Some(self.at), self.files)
            }
        };
        match child {
            Ok(child) => _ = self.here().children.insert(name, child),
            Err(error) => self.error = Some(error),
        }
    }

    fn import(&mut self, tree: &UseTree, path: &mut Vec<String>, reexport: bool) {
        let line = tree.span().start().line;
        let add = |reader: &mut Self, path: Vec<String>, name| {
            reader.here().imports.push(Import { path, name, reexport, line });
        };
        match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.import(&tree.tree, path, reexport);
                path.pop();
            }
            UseTree::Name(tree) if tree.ident == "self" => {
                add(self, path.clone(), path.last().cloned());
            }
            UseTree::Name(tree) => {
                let name = tree.ident.to_string();
                add(self, [path.as_slice(), std::slice::from_ref(&name)].concat(), Some(name));
            }
            UseTree::Rename(tree) => {
                let mut path = path.clone();
                if tree.ident != "self" {
                    path.push(tree.ident.to_string());
                }
                add(self, path, Some(tree.rename.to_string()));
            }
            UseTree::Glob(_) => add(self, path.clone(), None),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, path, reexport));
            }
        }
    }

    /// The paths in unparsed tokens: identifiers separated by `::`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut colons, mut line) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.mention(std::mem::take(&mut path), line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1
                }
                token => {
                    self.mention(std::mem::take(&mut path), line);
                    colons = 0;
                    if let TokenTree::Group(group) = token {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.mention(path, line);
    }

    fn mention(&mut self, path: Vec<String>, line: usize) {
        if !path.is_empty() {
            self.here().mentions.push(Mention { path, line });
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        if let Some(name) = name(item) {
            self.here().items.insert(name.to_string());
        }
        match item {
            Item::Mod(item) => self.child(item),
            Item::Use(item) if item.leading_colon.is_none() => {
                let reexport = !matches!(item.vis, Visibility::Inherited);
                self.import(&item.tree, &mut Vec::new(), reexport);
            }
            Item::Macro(item) => {
                let exported = item.attrs.iter().any(|a| a.path().is_ident("macro_export"));
                if let Some(name) = item.ident.as_ref().filter(|_| exported) {
                    let file = self.here().file;
                    self.tree.exported_macros.insert(name.to_string(), file);
                }
                visit::visit_item_macro(self, item);
            }
            item => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        if !is_test(impl_attributes(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.mention(names, path.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.tokens(item.tokens.clone());
    }

    // Attributes do not create dependencies between files.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

fn name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}
