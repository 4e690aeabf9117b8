#!/bin/bash
# measured.sh BIN MPIEXEC...: for each configuration and rank, the peak memory that a rehearsal reports is that which the
# run itself counts: within 3 % in the median, 8 % at most. Prints a table.
# shellcheck source=tests/integration/rehearsal/common.sh
. "$(dirname "$0")/common.sh"
launch=("$@")
small=("${language_model[@]}" --batch-size 12 --steps 3)

# A small BERT with pairs of texts, a small ResNet with images of one colour and noise, and an MLP.
python3 - <<'END'
import json, os, random, struct, zlib
random.seed(1)
os.mkdir("bert"), os.mkdir("resnet")
json.dump({"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 24, "hidden_size": 64, "intermediate_size": 128,
           "num_hidden_layers": 4, "num_attention_heads": 4, "max_position_embeddings": 32, "type_vocab_size": 2,
           "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "pad_token_id": 0}, open("bert/config.json", "w"))
tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + [chr(ord("a") + i) for i in range(20)]
json.dump({"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                     "vocab": {token: i for i, token in enumerate(tokens)}},
           "pre_tokenizer": {"type": "Whitespace"},
           "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}}, open("bert/tokenizer.json", "w"))
with open("pairs.tsv", "w") as out:
    out.write("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n")
    for i in range(256):
        out.write(f"{i % 2}\t1\t2\tq r s t a b\t{tokens[4 + i % 8]} t c d\n")
json.dump({"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 3, "embedding_size": 16,
           "hidden_sizes": [32, 64], "depths": [1, 1], "layer_type": "basic", "hidden_act": "relu"}, open("resnet/config.json", "w"))
def png(path, side, color):
    rows = b"".join(b"\0" + b"".join(bytes(min(255, max(0, c + random.randrange(-40, 40))) for c in color) for _ in range(side)) for _ in range(side))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for name, color in (("blue", (60, 60, 190)), ("red", (190, 60, 60))):
    os.makedirs("images/" + name)
    for i in range(64):
        png(f"images/{name}/{i}.png", 32, color)
END
bert=("$bin/text_classification" --model bert --random-weights --train pairs.tsv --validation pairs.tsv --batch-size 8 --num-epochs 1 --warmup-steps 4
  --cpu --run-dir run)
resnet=("$bin/image_classification" --model resnet --random-weights --whole-model --data images --image-size 32 --batch-size 8
  --num-epochs 1 --cpu --run-dir run)
mlp=("$bin/by_feature/optimizers" --epochs 1 --run-dir run)

# compare NAME RANKS [NAME=VALUE...] -- PROGRAM...
compare() {
  local name=$1 ranks=$2 variables=()
  shift 2
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  rm -rf run memory.*
  if ! env "${variables[@]}" HORTATOR_MEMORY_REPORT="$work/memory" HORTATOR_MEASURE_UPDATES=2 "${launch[@]}" "$ranks" "$@" >run.log 2>&1; then
    tail -5 run.log
    fail "the run itself: $name"
    return
  fi
  local all
  all=$(seq -s, 0 $((ranks - 1)))
  rm -rf run
  env "${variables[@]}" "$bin/hortator" rehearse -n "$ranks" --rank "$all" --json -- "$@" >rehearsal.json ||
    fail "the rehearsal: $name"
  python3 - "$ranks" "$name" <<'END' || fails=$((fails + 1))
import json, sys
rehearsed = json.load(open("rehearsal.json"))["rehearsed"]
ranks = range(int(sys.argv[1]))
peaks = [(json.load(open(f"memory.{rank}"))["memory"]["peak"], rehearsed[rank].get("memory", {}).get("peak", 0)) for rank in ranks]
measured, predicted = max(peaks, key=lambda peak: abs(peak[1] / peak[0] - 1))
with open("table.jsonl", "a") as table:
    table.write(json.dumps([sys.argv[2], len(ranks), measured, predicted]) + "\n")
print(f"{sys.argv[2]:42} {len(ranks)} ranks {measured / 2**20:9.2f} MiB measured {predicted / 2**20:9.2f} predicted {100 * (predicted / measured - 1):+6.2f} %")
for rank in ranks:
    if rehearsed[rank].get("computed_in_full"):
        print("    computed in full:", rehearsed[rank]["computed_in_full"])
END
}

compare "Llama" 1 -- "${small[@]}"
compare "Llama, recomputed" 1 -- "${small[@]}" --recompute
compare "Llama, bf16" 1 -- "${small[@]}" --precision bf16
compare "Llama, LoRA" 1 -- "${small[@]}" --lora 8
for ranks in 2 3 4; do
  for zero in 0 1 2 3; do compare "Llama, ZeRO $zero" $ranks -- "${small[@]}" --zero $zero; done
done
compare "Llama, ZeRO 1, moments on the host" 2 HORTATOR_OFFLOAD_OPTIMIZER=cpu -- "${small[@]}" --zero 1
compare "Llama, ZeRO 3, moments on the host" 2 HORTATOR_OFFLOAD_OPTIMIZER=cpu -- "${small[@]}" --zero 3
compare "Llama, ZeRO 3, all on the host" 2 HORTATOR_OFFLOAD_OPTIMIZER=cpu HORTATOR_OFFLOAD_PARAMETERS=cpu -- "${small[@]}" --zero 3
compare "Llama, tensor 2" 2 -- "${small[@]}" --tensor 2
compare "Llama, tensor 4, bf16" 4 -- "${small[@]}" --tensor 4 --precision bf16
compare "Llama, tensor 2, ZeRO 3" 4 -- "${small[@]}" --tensor 2 --zero 3
compare "Llama, context 2" 2 -- "${small[@]}" --context 2
compare "Llama, context 2 in a ring" 2 HORTATOR_CONTEXT_ATTENTION=ring -- "${small[@]}" --context 2
compare "Llama, context 2, tensor 2" 4 -- "${small[@]}" --context 2 --tensor 2
compare "Llama, context 4, recomputed" 4 -- "${small[@]}" --context 4 --recompute
compare "Llama, pipeline 2" 2 -- "${small[@]}" --pipeline 2
compare "Llama, pipeline 4" 4 -- "${small[@]}" --pipeline 4
compare "Llama, pipeline 2, tensor 2" 4 -- "${small[@]}" --pipeline 2 --tensor 2
compare "Llama, pipeline 2, ZeRO 1" 4 -- "${small[@]}" --pipeline 2 --zero 1
compare "Llama, pipeline 2, gpipe" 2 HORTATOR_PIPELINE_SCHEDULE=gpipe -- "${small[@]}" --pipeline 2
compare "Llama, pipeline 2, interleaved" 2 HORTATOR_PIPELINE_SCHEDULE=interleaved -- "${small[@]}" --pipeline 2
compare "GPT" 2 HORTATOR_ZERO_STAGE=0 -- "${gpt[@]}"
compare "GPT, ZeRO 3" 4 HORTATOR_ZERO_STAGE=3 -- "${gpt[@]}"
compare "GPT, context 2" 2 HORTATOR_CONTEXT=2 -- "${gpt[@]}"
compare "GPT, bf16" 2 HORTATOR_MIXED_PRECISION=bf16 -- "${gpt[@]}"
compare "GPT, 2 micro-steps, clipped" 2 HORTATOR_GRADIENT_ACCUMULATION_STEPS=2 HORTATOR_GRADIENT_CLIPPING=1 -- "${gpt[@]}"
for zero in 0 2 3; do compare "BERT, ZeRO $zero" 2 -- "${bert[@]}" --zero $zero; done
compare "BERT, tensor 2" 2 -- "${bert[@]}" --tensor 2
compare "BERT, bf16" 1 -- "${bert[@]}" --mixed-precision bf16
compare "ResNet" 1 -- "${resnet[@]}"
for zero in 0 1 3; do compare "ResNet, ZeRO $zero" 2 -- "${resnet[@]}" --zero $zero; done
compare "ResNet, norms over all ranks" 2 -- "${resnet[@]}" --sync-batch-norm
for optimizer in lion lamb adafactor adamw-8bit schedule-free; do
  compare "MLP, $optimizer, ZeRO 2" 2 -- "${mlp[@]}" --optimizer $optimizer --stage 2
done
compare "MLP, lion, ZeRO 3" 4 -- "${mlp[@]}" --stage 3
python3 - <<'END' || fails=$((fails + 1))
import json, statistics, sys
rows = [json.loads(line) for line in open("table.jsonl")]
off = [abs(predicted / measured - 1) for _, _, measured, predicted in rows]
print(f"{len(rows)} configurations: off by {100 * statistics.median(off):.2f} % in the median, {100 * max(off):.2f} % at most")
sys.exit(len(rows) < 40 or statistics.median(off) > 0.03 or max(off) > 0.08)
END
exit $((fails > 0))
