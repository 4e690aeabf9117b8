#!/usr/bin/env python3
"""Writes settings files as `accelerate config` does, with random answers: accelerate-random-files.py FOLDER COUNT SEED."""
import json
import pathlib
import random
import sys

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
random.seed(int(sys.argv[3]))
STRATEGIES = ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2", 1, 2, 3, 4, 5, "full_shard", "shard_grad_op"]


def maybe(section, chance, key, *values):
    if random.random() < chance:
        section[key] = random.choice(values)


def fsdp_config():
    section = {}
    version = random.choice([1, 2, None])
    if version:
        section["fsdp_version"] = version
    if version != 2:
        maybe(section, 0.6, "fsdp_sharding_strategy", *STRATEGIES)
    else:
        maybe(section, 0.7, "fsdp_reshard_after_forward", True, False, "true", "false", "yes", "no")
    if section.get("fsdp_sharding_strategy") not in ("NO_SHARD", 3):
        maybe(section, 0.4, "fsdp_offload_params", True, False, "true", "false")
    maybe(section, 0.4, "fsdp_activation_checkpointing", True, False, "true", "false", "True")
    if random.random() < 0.4:
        section.update(fsdp_transformer_layer_cls_to_wrap=random.choice(["BertLayer", "A,B"]), fsdp_auto_wrap_policy="TRANSFORMER_BASED_WRAP")
    maybe(section, 0.3, "fsdp_state_dict_type", "FULL_STATE_DICT", "SHARDED_STATE_DICT")
    return section


def parallelism_config():
    return {f"parallelism_config_{axis}_size": random.choice([1, 1, 2]) for axis in ("dp_replicate", "dp_shard", "tp", "cp")}


def deepspeed_config():
    section = {}
    maybe(section, 0.8, "zero_stage", 0, 1, 2, 3, "2", "3")
    for what, disk in (("optimizer", "o"), ("param", "p")):
        maybe(section, 0.6, f"offload_{what}_device", "none", "cpu", "nvme")
        if section.get(f"offload_{what}_device") == "nvme":
            section[f"offload_{what}_nvme_path"] = f"/nvme/{disk}"
    maybe(section, 0.5, "gradient_accumulation_steps", 1, 2, 4, "8", "auto")
    maybe(section, 0.5, "gradient_clipping", 1, 1.0, 0.5, "1.0", "auto", 0)
    maybe(section, 0.5, "zero3_init_flag", True, False)
    maybe(section, 0.3, "zero3_save_16bit_model", True, False)
    return section


def deepspeed_file():
    zero = {"stage": random.choice([0, 1, 2, 3, "auto"])}
    if random.random() < 0.5:
        zero["offload_optimizer"] = {"device": random.choice(["cpu", "none", "nvme"]), "nvme_path": "/n1"}
    if random.random() < 0.5:
        zero["offload_param"] = {"device": random.choice(["cpu", "none"]), "pin_memory": True}
    config = {"zero_optimization": zero, "train_batch_size": "auto", "gradient_accumulation_steps": random.choice([1, 4, "auto", 2.0])}
    maybe(config, 0.6, "gradient_clipping", 1.0, 0.3, "auto", 1)
    if random.random() < 0.6:
        config[random.choice(["fp16", "bf16"])] = {"enabled": random.choice([True, False, "auto"])}
    return config


for i in range(count):
    kind = random.choice(["FSDP", "FSDP", "DEEPSPEED", "DEEPSPEED", "MULTI_GPU", "NO", "FILE"])
    machines = random.choice([1, 1, 1, 2])
    settings = {"compute_environment": "LOCAL_MACHINE", "distributed_type": "DEEPSPEED" if kind == "FILE" else kind, "num_machines": machines,
                "num_processes": random.choice([2, 4, 8]), "use_cpu": False, "debug": random.choice([True, False]), "fsdp_config": fsdp_config(),
                "deepspeed_config": deepspeed_config()}
    if machines > 1:
        settings.update(main_process_ip="10.0.0.1", main_process_port=29500)
    if kind == "FSDP" and settings["fsdp_config"].get("fsdp_version") == 2 and random.random() < 0.5:
        settings["parallelism_config"] = parallelism_config()
    if kind == "FILE":
        (folder / f"{i}.json").write_text(json.dumps(deepspeed_file()))
        settings["deepspeed_config"] = {"deepspeed_config_file": f"{i}.json", "zero3_init_flag": False}
    else:
        maybe(settings, 0.8, "mixed_precision", "no", "fp16", "bf16")
    (folder / f"random-{i}.yaml").write_text(json.dumps(settings, indent=1))  # JSON is YAML
