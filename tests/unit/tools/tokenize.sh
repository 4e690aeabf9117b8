#!/usr/bin/env bash
# hortator tokenize as a user calls it: tokenize.sh HORTATOR TOKENIZERS. Prints each failure and exits with 1.
set -u
hortator=$1
tokenizers=$2
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "$0")/support.sh"

file_is() { [ "$(<"$1")" = "$2" ] || wrong "$1 should be '$2', and is '$(<"$1")'"; }

printf 'a b\nÜber\n\n' >texts
run tokenize --tokenizer "$tokenizers/gpt2" texts -o texts.jsonl; code_is 0; out_has '3 texts'; out_has 'as JSON lines'
[ "$(wc -l <texts.jsonl)" = 3 ] || wrong 'a line for each text was expected'
grep -q '"offsets":\[\[0,1\],\[2,3\]\]' texts.jsonl || wrong 'the offsets of the first text are wrong'
[ "$(tail -1 texts.jsonl)" = '{"ids":[],"offsets":[]}' ] || wrong 'the empty text has tokens'
[ ! -e texts.jsonl.part ] || wrong 'the temporary file is still there'
run tokenize --tokenizer "$tokenizers/gpt2/tokenizer.json" --decode texts.jsonl -o again.jsonl; code_is 0
file_is again.jsonl '{"text":"a b"}
{"text":"Über"}
{"text":""}'

# pairs, and special tokens
printf 'a\tb\n' >pairs
run tokenize --tokenizer "$tokenizers/bert_cased" --pairs pairs -o pairs.jsonl; code_is 0
grep -q '"type_ids":\[0,0,0,1,1\]' pairs.jsonl || wrong 'the types of a pair are wrong'
run tokenize --tokenizer "$tokenizers/bert_cased" --pairs --no-special-tokens pairs -o pairs.jsonl; code_is 0
grep -q '"type_ids":\[0,1\]' pairs.jsonl || wrong 'special tokens were not left out'
run tokenize --tokenizer "$tokenizers/bert_cased" --pairs texts -o pairs.jsonl; code_is 2; err_has 'line 1: expected two texts with a tab'

# no text is cut or padded: this tokenizer's file asks for 16 to 20 tokens
printf 'a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a\na\n' >long
run tokenize --tokenizer "$tokenizers/bert" long -o long.jsonl; code_is 0; out_has '2 texts, 35 tokens'

# packed: two bytes a token, and an end after each line
run tokenize --tokenizer "$tokenizers/gpt2" --packed --end '<|end|>' texts -o texts.bin; code_is 0; out_has 'as uint16'
tokens=$(sed -nE 's/.* ([0-9]+) tokens.*/\1/p' out)
[ "$(wc -c <texts.bin)" = $((2 * tokens)) ] || wrong 'two bytes a token were expected'
[ "$(od -An -tu2 texts.bin | tr -s ' ' '\n' | grep -c '^0$')" = 3 ] || wrong 'an end after each line was expected'
run tokenize --tokenizer "$tokenizers/gpt2" --packed --end '<none>' texts -o x; code_is 2; err_has "no token '<none>'"

# several threads give the same
run tokenize --tokenizer "$tokenizers/gpt2" --threads 3 texts -o threads.jsonl; code_is 0
cmp -s texts.jsonl threads.jsonl || wrong 'three threads give other tokens'

# errors
printf 'ok\n\xff\n' >invalid
run tokenize --tokenizer "$tokenizers/gpt2" invalid -o x; code_is 2; err_has 'invalid, line 2'; err_has 'not valid UTF-8 at byte 0'
if [ -e x ] || [ -e x.part ]; then wrong 'a failed call has left a file'; fi
printf '[1]\n{"ids":["a"]}\n' >ids
run tokenize --tokenizer "$tokenizers/gpt2" --decode ids -o x; code_is 2; err_has 'ids, line 2: expected a JSON list of ids'
run tokenize texts -o x; code_is 2; err_has 'The tokenizer is missing'
run tokenize --tokenizer "$tokenizers/gpt2" texts; code_is 2; err_has 'The output file is missing'
run tokenize --tokenizer "$tokenizers/gpt2" -o x; code_is 2; err_has 'Expected one input file, got 0'
run tokenize --tokenizer "$tokenizers/gpt2" absent -o x; code_is 2; err_has "Cannot read 'absent'"
run tokenize --tokenizer absent texts -o x; code_is 1; err_has 'Cannot read the tokenizer'
run tokenize --tokenizer "$tokenizers/gpt2" --decode --pairs texts -o x; code_is 2; err_has '--decode and --pairs'
run tokenize --tokenizer "$tokenizers/gpt2" --threads 0 texts -o x; code_is 2; err_has '--threads: expected a number from 1'
run tokenize --tokenizer "$tokenizers/gpt2" texts -o /absent/x; code_is 1; err_has 'Cannot write'

[ "$failures" = 0 ] || { echo "$failures failures"; exit 1; }
