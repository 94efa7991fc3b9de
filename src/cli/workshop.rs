use super::out::Exit;
pub fn workshop(_: &super::WorkshopArgs) -> anyhow::Result<Exit> { Ok(Exit::Ok) }
