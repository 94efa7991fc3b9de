//! Writes a Kineto trace of about some millions of bytes, for measurements: `cargo run --release --example make_trace 100 rank0.json 0`.

use std::io::{BufWriter, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut given = std::env::args().skip(1);
    let usage = "give millions of bytes, a file and a rank";
    let megabytes: u64 = given.next().ok_or(usage)?.parse()?;
    let file = given.next().ok_or(usage)?;
    let rank: u64 = given.next().ok_or(usage)?.parse()?;
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    let begin = format!(
        r#"{{"schemaVersion":1,"distributedInfo":{{"backend":"nccl","rank":{rank},"world_size":8}},"traceEvents":["#
    );
    out.write_all(begin.as_bytes())?;
    let (mut written, mut id, mut at) = (0, 0_u64, 1000 * rank);
    while written < megabytes * 1_000_000 {
        let (process, launch) = (7000 + rank, at as f64 + 0.125);
        let name = match id % 40 {
            0 => "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
            n if n % 3 == 0 => "ampere_sgemm_128x64_tn",
            _ => {
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
            }
        };
        let events = format!(
            "{}{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::op{}\",\"pid\":{process},\"tid\":{process},\"ts\":{at},\"dur\":9.5,\
             \"args\":{{\"External id\":{id},\"Ev Idx\":{id}}}}},\n\
             {{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":{process},\"tid\":{process},\"ts\":{launch:.3},\"dur\":4.25,\
             \"args\":{{\"External id\":{id},\"cbid\":211,\"correlation\":{id}}}}},\n\
             {{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"{name}\",\"pid\":0,\"tid\":7,\"ts\":{:.3},\"dur\":7.75,\"args\":{{\"External id\":{id},\
             \"device\":0,\"context\":1,\"stream\":7,\"correlation\":{id},\"registers per thread\":32,\"grid\":[108,1,1],\"block\":[256,1,1]}}}}",
            if id == 0 { "" } else { ",\n" },
            id % 50,
            launch + 5.0,
        );
        out.write_all(events.as_bytes())?;
        (written, id, at) = (written + events.len() as u64, id + 1, at + 10);
    }
    out.write_all(b"]}\n")?;
    Ok(out.flush()?)
}
