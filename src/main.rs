fn main() -> anyhow::Result<()> {
    perflings::engine::serve()
}
