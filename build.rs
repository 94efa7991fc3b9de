//! Compiles the crate anew when a lesson or an exercise was added: the binary carries them all.

fn main() {
    println!("cargo:rerun-if-changed=exercises");
    println!("cargo:rerun-if-changed=lessons");
}
