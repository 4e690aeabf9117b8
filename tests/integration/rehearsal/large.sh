#!/bin/bash
# large.sh BIN: a Llama of 70 billion parameters as one rank of 4,096, on one core and with little memory.
# shellcheck source=tests/integration/rehearsal/common.sh
. "$(dirname "$0")/common.sh"

mkdir large
cat >large/config.json <<'END'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
 "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256,
 "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false,
 "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32"}
END
python3 -c "print('the quick brown fox jumps over the lazy dog ' * 400000)" >long.txt
python3 - "$bin/hortator" rehearse -n 4096 --rank 317 --json -- "$bin/language_model" --model large --random-weights \
  --bytes --text long.txt --batch-size 1024 --context-length 4096 --zero 3 --tensor 8 --recompute --cpu --run-dir run <<'END'
import json, resource, subprocess, sys, time
begin = time.monotonic()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
seconds = time.monotonic() - begin
kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(done.stderr)
rank = json.loads(done.stdout)["rehearsed"][0]
memory = rank.get("memory", {})
print(f"{seconds:.1f} s, {kib / 2**20:.2f} GiB used; rehearsed peak {memory.get('peak', 0) / 2**30:.1f} GiB", rank.get("error", ""))
# 70.6 billion parameters; of those, with 4 bytes, one of 8 tensor ranks and 512 shards has its part of two moments.
moments = 2 * 4 * 70.55e9 / 4096
good = rank["axes"]["tensor"] == {"ranks": 8, "index": 317 % 8} and rank["axes"]["shard"] == {"ranks": 512, "index": 317 // 8}
good = good and abs(memory["optimizers"] / moments - 1) < 0.03 and memory["peak"] > 2**30
tensor = [row for row in rank["traffic"] if row["axis"] == "tensor"]
good = good and tensor and all(row["ranks"] == 8 for row in tensor)
sys.exit(0 if good and seconds < 60 and kib < 2 * 2**20 else 1)
END
