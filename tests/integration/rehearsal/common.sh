# shellcheck shell=bash disable=SC2034
# Sourced: makes a folder of its own with a small Llama and a text; $bin has the programs of the build.
set -euo pipefail
bin=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# make_llama FOLDER HIDDEN LAYERS HEADS KEY_HEADS
make_llama() {
  mkdir -p "$1"
  cat >"$1/config.json" <<END
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": $2, "intermediate_size": $((2 * $2)),
 "num_hidden_layers": $3, "num_attention_heads": $4, "num_key_value_heads": $5, "vocab_size": 512,
 "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
 "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32"}
END
}

make_llama llama 128 4 8 4
python3 -c "print('the quick brown fox jumps over the lazy dog ' * 4000)" >text.txt
language_model=("$bin/language_model" --model llama --random-weights --bytes --text text.txt --context-length 128
  --cpu --run-dir run)
gpt=("$bin/gpt" --text text.txt --steps 3 --batch-size 12 --cpu --run-dir run)
fails=0
fail() {
  echo "FAIL: $*"
  fails=$((fails + 1))
}
