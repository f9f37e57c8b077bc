//! `Debug` of a handle by its identifying values; its parts are not informative.

/// Implements `Debug` for a type, with its generic parameters in the brackets, by some of its values.
#[macro_export]
macro_rules! debug_by {
    ([$($generics:tt)*] $type:ty, $name:literal, |$this:ident| $($field:literal: $value:expr),*) => {
        impl<$($generics)*> std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct($name)$(.field($field, &$value))*.finish_non_exhaustive()
            }
        }
    };
}
