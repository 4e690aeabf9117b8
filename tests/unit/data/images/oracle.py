#!/usr/bin/env python3
"""Images and what torchvision makes of them:

    oracle.py FILE [SEED]    writes FILE.safetensors

Names are "input.N", and for each of them "N.transform.argument[.argument]". Needs: pip install torch torchvision safetensors"""
import sys

import torch
import torchvision.transforms.functional as functional
from safetensors.torch import save_file

torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
tensors = {}
for number, (channels, height, width) in enumerate([(3, 12, 15), (3, 10, 7), (1, 9, 9)]):
    image = torch.rand(channels, height, width)
    image[:, :2, :2] = 0.25  # grey
    image[0, 3, 3:6] = 1  # saturated, with channels that are equal
    tensors[f'input.{number}'] = image
    results = {}
    for size in ((6, 6), (20, 17), (12, 15), (4, 25)):
        results[f'resize.{size[0]}.{size[1]}'] = functional.resize(image, list(size), antialias=True)
    for side in (5, 9, 16):
        results[f'shorter.{side}'] = functional.resize(image, side, antialias=True)
    for side in (4, 5, 7):
        results[f'center.{side}'] = functional.center_crop(image, side)
    for percent in (0, 40, 170):
        results[f'brightness.{percent}'] = functional.adjust_brightness(image, percent / 100)
        results[f'contrast.{percent}'] = functional.adjust_contrast(image, percent / 100)
        results[f'saturation.{percent}'] = functional.adjust_saturation(image, percent / 100)
    for percent in (-50, -20, 0, 10, 50):
        results[f'hue.{percent}'] = functional.adjust_hue(image, percent / 100)
    results['flip.0'] = functional.hflip(image)
    mean, deviation = [0.485, 0.456, 0.406][:channels], [0.229, 0.224, 0.225][:channels]
    results['normalise.0'] = functional.normalize(image, mean, deviation)
    for name, result in results.items():
        tensors[f'{number}.{name}'] = result.contiguous().clone()
save_file(tensors, sys.argv[1])
