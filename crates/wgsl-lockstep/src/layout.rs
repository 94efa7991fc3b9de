//! Sizes and offsets of types. In memory that invocations share they are in bytes, as WGSL lays out types. In values and in an
//! invocation's own memory they are in words, and each scalar takes one word.

use std::fmt::Write;

use naga::{
    ArraySize, Expression, Handle, Literal, Module, Override, Scalar, ScalarKind, Type, TypeInner,
    VectorSize,
};

/// The size of a type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TypeSize {
    pub(crate) bytes: u64,
    pub(crate) words: u64,
    /// The width of the smallest scalar in bytes. The shadow memory has one cell for each granule.
    pub(crate) granule: u32,
    /// True if the type has 64-bit numbers, 16-bit integers, or no numbers at all.
    pub(crate) odd: bool,
}

/// A scalar of a type, with its offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub(crate) offset: u32,
    pub(crate) scalar: Scalar,
}

/// The distance from one element of an array, a vector or a matrix to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stride {
    pub(crate) bytes: u32,
    pub(crate) words: u32,
    /// The number of elements, if the type fixes it.
    pub(crate) count: Option<u32>,
}

/// The sizes of a module's types.
pub(crate) struct Layout<'a> {
    module: &'a Module,
    sizes: Vec<TypeSize>,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(module: &'a Module) -> Self {
        let sizes = Vec::new();
        let mut layout = Self { module, sizes };
        for (_, ty) in module.types.iter() {
            let size = layout.size_of(&ty.inner);
            layout.sizes.push(size);
        }
        layout
    }

    /// Returns the size of a type; a runtime-sized array has none.
    pub(crate) fn size_of(&self, inner: &TypeInner) -> TypeSize {
        let plain = |words: u64, scalar: Scalar| TypeSize {
            bytes: inner.size(self.module.to_ctx()).into(),
            words,
            granule: u32::from(scalar.width),
            odd: !is_known(scalar),
        };
        match *inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => plain(1, scalar),
            TypeInner::Vector { size, scalar } => plain(size as u64, scalar),
            TypeInner::Matrix {
                columns,
                rows,
                scalar,
            } => plain(columns as u64 * rows as u64, scalar),
            TypeInner::CooperativeMatrix {
                columns,
                rows,
                scalar,
                ..
            } => plain(columns as u64 * rows as u64, scalar),
            TypeInner::Array { base, stride, .. } => {
                let element = self.size(base);
                let count = self
                    .stride(inner)
                    .and_then(|stride| stride.count)
                    .unwrap_or(0);
                TypeSize {
                    bytes: u64::from(count) * u64::from(stride),
                    words: u64::from(count).saturating_mul(element.words),
                    ..element
                }
            }
            TypeInner::Struct { ref members, span } => {
                let sizes = members.iter().map(|member| self.size(member.ty));
                TypeSize {
                    bytes: span.into(),
                    words: sizes
                        .clone()
                        .fold(0, |sum, size| sum.saturating_add(size.words)),
                    granule: sizes.clone().map(|size| size.granule).min().unwrap_or(4),
                    odd: sizes.clone().any(|size| size.odd),
                }
            }
            _ => TypeSize {
                granule: 4,
                odd: true,
                ..TypeSize::default()
            },
        }
    }

    pub(crate) fn size(&self, ty: Handle<Type>) -> TypeSize {
        self.sizes.get(ty.index()).copied().unwrap_or_default()
    }

    /// Returns the stride of a type that is indexed by number; `None` for other types.
    pub(crate) fn stride(&self, inner: &TypeInner) -> Option<Stride> {
        let (bytes, words, count) = match *inner {
            TypeInner::Vector { size, scalar } => (scalar.width.into(), 1, Some(size as u32)),
            TypeInner::Matrix {
                columns,
                rows,
                scalar,
            } => (
                column_bytes(rows, scalar),
                rows as u32,
                Some(columns as u32),
            ),
            TypeInner::Array { base, size, stride } => {
                let count = match size {
                    ArraySize::Constant(count) => Some(count.get()),
                    ArraySize::Pending(size) => self.override_value(size),
                    ArraySize::Dynamic => None,
                };
                (stride, self.size(base).words as u32, count)
            }
            _ => return None,
        };
        Some(Stride {
            bytes,
            words,
            count,
        })
    }

    /// Returns the value of an override that is the size of an array.
    fn override_value(&self, size: Handle<Override>) -> Option<u32> {
        let init = self.module.overrides[size].init?;
        match self.module.global_expressions[init] {
            Expression::Literal(Literal::U32(count)) => Some(count),
            Expression::Literal(Literal::I32(count)) => count.try_into().ok(),
            _ => None,
        }
    }

    /// Returns the offset of a struct's member, in bytes and in words; `None` for other types.
    pub(crate) fn member(&self, inner: &TypeInner, index: u32) -> Option<(u32, u32)> {
        let TypeInner::Struct { members, .. } = inner else {
            return None;
        };
        let before = members.get(..index as usize)?;
        let words: u64 = before.iter().map(|member| self.size(member.ty).words).sum();
        Some((members.get(index as usize)?.offset, words as u32))
    }

    /// Returns all scalars of a type in the order of its words.
    pub(crate) fn leaves(&self, inner: &TypeInner) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        self.collect(inner, 0, &mut leaves);
        leaves
    }

    fn collect(&self, inner: &TypeInner, offset: u32, leaves: &mut Vec<Leaf>) {
        match *inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
                leaves.push(Leaf { offset, scalar })
            }
            TypeInner::Vector { scalar, .. } => {
                self.elements(inner, &TypeInner::Scalar(scalar), offset, leaves);
            }
            TypeInner::Matrix { rows, scalar, .. } => {
                let size = rows;
                self.elements(inner, &TypeInner::Vector { size, scalar }, offset, leaves);
            }
            TypeInner::Array { base, .. } => {
                self.elements(inner, &self.module.types[base].inner, offset, leaves);
            }
            TypeInner::Struct { ref members, .. } => {
                for member in members {
                    let inner = &self.module.types[member.ty].inner;
                    self.collect(inner, offset + member.offset, leaves);
                }
            }
            _ => {}
        }
    }

    /// Adds the scalars of each element of a type that is indexed by number.
    fn elements(
        &self,
        inner: &TypeInner,
        element: &TypeInner,
        offset: u32,
        leaves: &mut Vec<Leaf>,
    ) {
        if let Some(stride) = self.stride(inner) {
            for index in 0..stride.count.unwrap_or(0) {
                self.collect(element, offset + index * stride.bytes, leaves);
            }
        }
    }

    /// Returns the part of a variable at `offset` bytes, as WGSL writes it: `tile[3].x`. The part has `bytes` bytes; with `u32::MAX` it is a
    /// runtime-sized array.
    pub(crate) fn path(&self, name: &str, ty: Handle<Type>, mut offset: u32, bytes: u32) -> String {
        let mut path = name.to_owned();
        let mut inner = &self.module.types[ty].inner;
        loop {
            let whole = self.size_of(inner).bytes;
            // A runtime-sized array and a struct with one have size 0 here.
            let fits = whole != 0 && (u64::from(bytes) >= whole) && bytes != u32::MAX;
            let open = whole == 0 && bytes == u32::MAX && matches!(inner, TypeInner::Array { .. });
            if offset == 0 && (fits || open) {
                return path;
            }
            match inner {
                TypeInner::Array { base, stride, .. } if *stride > 0 => {
                    _ = write!(path, "[{}]", offset / stride);
                    offset %= stride;
                    inner = &self.module.types[*base].inner;
                }
                TypeInner::Struct { members, .. } => {
                    let Some(member) = members.iter().rev().find(|member| member.offset <= offset)
                    else {
                        return path;
                    };
                    _ = write!(path, ".{}", member.name.as_deref().unwrap_or("?"));
                    offset -= member.offset;
                    inner = &self.module.types[member.ty].inner;
                }
                TypeInner::Matrix { rows, scalar, .. } => {
                    let column = column_bytes(*rows, *scalar);
                    _ = write!(path, "[{}]", offset / column);
                    if bytes <= u32::from(scalar.width) {
                        push_component(&mut path, offset % column / u32::from(scalar.width));
                    }
                    return path;
                }
                TypeInner::Vector { scalar, .. } => {
                    push_component(&mut path, offset / u32::from(scalar.width));
                    return path;
                }
                _ => return path,
            }
        }
    }
}

fn is_known(scalar: Scalar) -> bool {
    match scalar.kind {
        ScalarKind::Bool => true,
        ScalarKind::Float => matches!(scalar.width, 2 | 4),
        _ => scalar.width == 4,
    }
}

fn push_component(path: &mut String, index: u32) {
    path.push('.');
    path.push(*['x', 'y', 'z', 'w'].get(index as usize).unwrap_or(&'?'));
}

/// Returns the bytes from one column of a matrix to the next.
fn column_bytes(rows: VectorSize, scalar: Scalar) -> u32 {
    let rows = if rows == VectorSize::Bi { 2 } else { 4 };
    rows * u32::from(scalar.width)
}
