"""Models that the tests export. each_case() gives them with inputs for them."""
import math
import random
from typing import Callable

import torch
from torch import nn
from torch.export import Dim

from nets_by_hand import Case, hand_written
from nets_odd import odd_models


def of_torchvision():
    try:
        import torchvision.models as models
    except ImportError:
        return
    image = torch.randn(2, 3, 64, 64)
    for name in ("resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "mnasnet0_5", "regnet_y_400mf", "efficientnet_b0", "densenet121"):
        for evaluates in (True, False):
            yield Case(f"{name}_{'eval' if evaluates else 'train'}", getattr(models, name)(num_classes=5), (image,), evaluates=evaluates,
                       dynamic_shapes=({0: Dim.AUTO},))
    yield Case("swin_t", models.swin_t(num_classes=5), (image,), evaluates=True)
    yield Case("vit", models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5), (torch.randn(2, 3, 32, 32),), evaluates=True, dynamic_shapes=({0: Dim.AUTO},))


class TextModel(nn.Module):
    """A model of transformers that reads texts."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids, attention_mask=None):
        return {"logits": self.net(input_ids=input_ids, attention_mask=attention_mask).logits}


class TwoTexts(nn.Module):
    """A model of transformers with an encoder and a decoder."""

    def __init__(self, net, first="input_ids"):
        super().__init__()
        self.net, self.first = net, first

    def forward(self, inputs, decoder_input_ids):
        return self.net(**{self.first: inputs}, decoder_input_ids=decoder_input_ids).logits


class ImageModel(nn.Module):
    """A model of transformers that reads images."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, pixel_values):
        return self.net(pixel_values=pixel_values).logits


def of_transformers():
    try:
        import transformers as hf
    except ImportError:
        return
    small = dict(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
                 max_position_embeddings=32, use_cache=False)
    args = (torch.randint(3, 64, (2, 7)), torch.ones(2, 7, dtype=torch.int64))
    args[1][0, :3] = 0  # padding
    shapes = ({0: Dim.AUTO, 1: Dim.AUTO},) * 2

    def causal(name, config_class, model_class, **changes):
        settings = {**small, **changes}
        net = getattr(hf, model_class)(getattr(hf, config_class)(**settings))
        return Case(name, TextModel(net), args, dynamic_shapes=shapes, evaluates=True)

    makers = [
        lambda: causal("llama", "LlamaConfig", "LlamaForCausalLM"),
        lambda: causal("llama_tied", "LlamaConfig", "LlamaForCausalLM", tie_word_embeddings=True),
        lambda: causal("mistral", "MistralConfig", "MistralForCausalLM"),
        lambda: causal("qwen2", "Qwen2Config", "Qwen2ForCausalLM"),
        lambda: causal("qwen3", "Qwen3Config", "Qwen3ForCausalLM", head_dim=8),
        lambda: causal("gemma", "GemmaConfig", "GemmaForCausalLM", head_dim=8),
        lambda: causal("phi", "PhiConfig", "PhiForCausalLM"),
        lambda: causal("olmo", "OlmoConfig", "OlmoForCausalLM"),
        lambda: causal("bert", "BertConfig", "BertForMaskedLM"),
        lambda: causal("roberta", "RobertaConfig", "RobertaForMaskedLM"),
        lambda: causal("electra", "ElectraConfig", "ElectraForMaskedLM"),
        lambda: causal("distilbert", "DistilBertConfig", "DistilBertForMaskedLM", dim=16, hidden_dim=32, n_layers=2, n_heads=2),
        lambda: causal("gpt2", "GPT2Config", "GPT2LMHeadModel", n_embd=16, n_layer=2, n_head=2, n_positions=32),
        lambda: causal("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM"),
        lambda: causal("opt", "OPTConfig", "OPTForCausalLM", ffn_dim=32, word_embed_proj_dim=16),
        lambda: causal("albert", "AlbertConfig", "AlbertForMaskedLM", embedding_size=16),
    ]
    special = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    layers = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32)

    def two_texts(name, config_class, model_class, inputs=args[0], first="input_ids", **settings):
        net = getattr(hf, model_class)(getattr(hf, config_class)(vocab_size=64, use_cache=False, **special, **settings))
        return Case(name, TwoTexts(net, first), (inputs, args[0][:, :5].clone()), dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO}), evaluates=True)

    makers += [
        lambda: causal("gemma2", "Gemma2Config", "Gemma2ForCausalLM", head_dim=8),
        lambda: causal("phi3", "Phi3Config", "Phi3ForCausalLM", pad_token_id=0),
        lambda: causal("falcon", "FalconConfig", "FalconForCausalLM"),
        lambda: causal("bloom", "BloomConfig", "BloomForCausalLM", n_layer=2, n_head=2),
        lambda: causal("mixtral", "MixtralConfig", "MixtralForCausalLM", num_local_experts=4, experts_implementation="batched_mm"),
        lambda: two_texts("t5", "T5Config", "T5ForConditionalGeneration", d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2),
        lambda: two_texts("bart", "BartConfig", "BartForConditionalGeneration", max_position_embeddings=32, **layers),
        lambda: two_texts("whisper", "WhisperConfig", "WhisperForConditionalGeneration", torch.randn(2, 8, 40), "input_features", num_mel_bins=8,
                          max_source_positions=20, max_target_positions=16, **layers),
    ]
    for make in makers:
        try:
            yield make()
        except Exception as error:  # a release of transformers without this model
            print("left out:", str(error).splitlines()[0][:100])
    for name, config, model, settings in (
        ("hf_vit", "ViTConfig", "ViTForImageClassification", dict(image_size=32, patch_size=8, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)),
        ("hf_resnet", "ResNetConfig", "ResNetForImageClassification", dict(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")),
        ("hf_convnext", "ConvNextConfig", "ConvNextForImageClassification", dict(hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1])),
    ):
        net = getattr(hf, model)(getattr(hf, config)(**settings))
        yield Case(name, ImageModel(net), (torch.randn(2, 3, 32, 32),), dynamic_shapes=({0: Dim.AUTO},), evaluates=True)


class RandomConvolutions(nn.Module):
    """Blocks of convolution, norm and activation, with random options and skips."""

    def __init__(self, generator):
        super().__init__()
        pick = generator.choice
        self.blocks, self.skips = nn.ModuleList(), []
        channels = 3
        for _ in range(generator.randint(1, 4)):
            width = pick((4, 6, 8))
            norm = pick((nn.BatchNorm2d(width), nn.GroupNorm(2, width), nn.InstanceNorm2d(width, affine=True), nn.Identity()))
            convolution = nn.Conv2d(channels, width, pick((1, 3)), stride=pick((1, 1, 2)), padding=1, bias=pick((True, False)),
                                    groups=pick((1, math.gcd(channels, width))))
            self.blocks.append(nn.Sequential(convolution, norm, pick((nn.ReLU(inplace=True), nn.GELU(), nn.Hardswish(), nn.LeakyReLU(0.2)))))
            self.skips.append(pick((True, False)))
            channels = width
        self.pool = pick((nn.AdaptiveAvgPool2d(1), nn.AdaptiveMaxPool2d(1)))
        self.head = nn.Linear(channels, 3)

    def forward(self, x):
        for block, skips in zip(self.blocks, self.skips):
            y = block(x)
            x = y + x if skips and y.shape == x.shape else y
        return self.head(self.pool(x).flatten(1))


class RandomTransformer(nn.Module):
    """Layers of attention with random widths, masks, norms and ways to tell positions."""

    def __init__(self, generator):
        super().__init__()
        pick = generator.choice
        heads, width = pick((1, 2, 4)), pick((8, 16))
        self.embedding = nn.Embedding(13, width, padding_idx=pick((None, 0)))
        self.positions = nn.Parameter(torch.randn(16, width) * 0.1) if pick((True, False)) else None
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, activation=pick(("relu", "gelu")), batch_first=True,
                                           norm_first=pick((True, False)), bias=pick((True, False)))
        self.layers = nn.ModuleList([layer, nn.MultiheadAttention(width, heads, batch_first=True)][: generator.randint(1, 2)])
        self.is_causal = pick((True, False))
        self.head = nn.Linear(width, 13)

    def forward(self, ids):
        x = self.embedding(ids)
        if self.positions is not None:
            x = x + self.positions[: ids.shape[1]]
        mask = torch.full((ids.shape[1], ids.shape[1]), float("-inf")).triu(1) if self.is_causal else None
        for layer in self.layers:
            x = layer(x, x, x, attn_mask=mask, need_weights=False)[0] + x if isinstance(layer, nn.MultiheadAttention) else layer(x, mask)
        return self.head(x)


def of_random_options(count=30):
    """Other models for each seed."""
    for seed in range(count):
        generator = random.Random(seed)
        torch.manual_seed(seed)
        if seed % 2 == 0:
            yield Case(f"convolutions_{seed}", RandomConvolutions(generator), (torch.randn(3, 3, 9, 9),), dynamic_shapes=({0: Dim.AUTO},),
                       evaluates=generator.choice((True, False)), more_args=(torch.randn(5, 3, 9, 9),))
        else:
            yield Case(f"transformer_{seed}", RandomTransformer(generator), (torch.randint(0, 13, (2, 6)),), dynamic_shapes=({0: Dim.AUTO},),
                       more_args=(torch.randint(0, 13, (4, 6)),))


def each_case(families):
    makers: dict[str, Callable] = {"hand": hand_written, "odd": odd_models, "torchvision": of_torchvision, "transformers": of_transformers, "random": of_random_options}
    for family in families:
        torch.manual_seed(1)
        yield from makers[family]()
