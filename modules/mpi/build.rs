//! Records the MPI that the module is built for: its kind, and the compiler wrapper.

fn main() {
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    println!("cargo:rerun-if-env-changed=MPICC");
    println!("cargo:rerun-if-env-changed=LLCL_MPI");
    let kind = std::env::var("LLCL_MPI").unwrap_or_else(|_| "MPI".into());
    println!("cargo:rustc-env=LLCL_MPI_BUILT_FOR={kind}, {mpicc}");
}
