#!/usr/bin/env python3
"""Compares what Accelerate's launcher and Hortator's make of settings files: accelerate-launch.py HORTATOR FILE...

The settings have the names of Hortator. Each file is read as by `accelerate launch --config_file FILE train.py`, and the variables that the launcher
would set are given to the plugin of FSDP or DeepSpeed, in the folder of the file.
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import DeepSpeedPlugin, FullyShardedDataParallelPlugin
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env, prepare_simple_launcher_cmd_env

# by number; the hybrid strategies keep their names
STAGES = {1: "3", 2: "2", 3: "0", 4: "HYBRID_SHARD", 5: "HYBRID_SHARD_ZERO2"}


def variables_of(args, fields):
    if args.use_deepspeed:
        args.deepspeed_fields_from_accelerate_config = ",".join(fields)
        return prepare_deepspeed_cmd_env(args)[1]
    is_single = not (args.use_fsdp or args.multi_gpu)
    return prepare_simple_launcher_cmd_env(args)[1] if is_single else prepare_multi_gpu_env(args)


def of_fsdp(variables):
    # Version 1 asks for a device where these are on; they do not decide what is compared.
    os.environ.update(FSDP_SYNC_MODULE_STATES="false", FSDP_CPU_RAM_EFFICIENT_LOADING="false")
    plugin = FullyShardedDataParallelPlugin()
    if plugin.fsdp_version == 2:
        stage = "3" if plugin.reshard_after_forward else "2"
    else:
        stage = STAGES[plugin.sharding_strategy.value]
    settings = {"zero_stage": stage}
    if variables["FSDP_OFFLOAD_PARAMS"] in ("true", "1", "yes"):
        settings["offload_optimizer"] = "cpu"
        if stage in ("3", "HYBRID_SHARD"):
            settings["offload_parameters"] = "cpu"
    if plugin.activation_checkpointing:
        settings["recompute_layers"] = variables.get("FSDP_TRANSFORMER_CLS_TO_WRAP") or "all"
    return settings


def of_deepspeed(args):
    plugin = DeepSpeedPlugin()
    config = plugin.deepspeed_config
    zero = config["zero_optimization"]
    settings = {"zero_stage": str(zero.get("stage", 0))}
    for name, section, path in (("offload_optimizer", "offload_optimizer", args.offload_optimizer_nvme_path), ("offload_parameters", "offload_param", args.offload_param_nvme_path)):
        device = zero.get(section, {}).get("device", "none")
        # The launcher does not hand over paths; DeepSpeed offloads shards, which parameters have at stage 3 only.
        if device not in ("none", "auto", None) and settings["zero_stage"] in ("123" if name == "offload_optimizer" else "3"):
            settings[name] = device if device == "cpu" else zero[section].get("nvme_path") if zero[section].get("nvme_path") not in (None, "none") else path
    steps = config.get("gradient_accumulation_steps", "auto")
    if steps not in ("auto", None):
        settings["gradient_accumulation_steps"] = steps
    # prepare() replaces "auto" by 1; without the entry, or with 0, DeepSpeed does not clip
    if config.get("gradient_clipping"):
        settings["gradient_clipping"] = config["gradient_clipping"]
    for precision in ("fp16", "bf16"):
        if config.get(precision, {}).get("enabled") is True:
            settings["mixed_precision"] = precision
    return settings


def read(file):
    os.chdir(os.path.dirname(os.path.abspath(file)))
    args = launch_command_parser().parse_args(["--config_file", os.path.basename(file), "train.py"])
    args, defaults, from_file = _validate_launch_command(args)
    if defaults.compute_environment != "LOCAL_MACHINE":
        raise ValueError("not a machine of the user's own")
    if args.tpu or args.use_megatron_lm:
        raise ValueError("TPU or Megatron-LM")
    args.main_process_port = args.main_process_port or 0
    fields = list(defaults.deepspeed_config.keys()) + (["mixed_precision"] if from_file else [])
    variables = variables_of(args, fields)
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        settings = {"ranks": args.num_processes, "mixed_precision": args.mixed_precision}
        if args.num_machines and args.num_machines > 1:
            settings["nodes"] = args.num_machines
        if args.use_fsdp:
            settings.update(of_fsdp(variables))
        if args.use_deepspeed:
            settings.update(of_deepspeed(args))
        for axis, key in (("dp_replicate", "replicate"), ("dp_shard", "shard"), ("tp", "tensor"), ("cp", "context"), ("sp", "context")):
            size = int(variables.get(f"PARALLELISM_CONFIG_{axis.upper()}_SIZE", 1))
            if size > 1:
                settings[key] = size
    finally:
        os.environ.clear()
        os.environ.update(before)
    return settings


def results_of(files):
    results, output = {}, io.StringIO()
    for file in files:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                results[file] = read(file)
            except (Exception, SystemExit) as error:  # whatever Accelerate raises
                results[file] = {"error": f"{type(error).__name__}: {error}"}
    return results


# Files that one of the two refuses, or reads in another way.
STRICTER = {"cp_and_sp.yaml", "ds_filter.yaml", "ds_moe.yaml", "fsdp_act_offload.yaml", "fsdp_no_shard_offload.yaml",
            "fsdp_unknown.yaml", "multi_xpu.yaml", "wrong_section.yaml"}
MORE_LENIENT = {"ds_file_auto.yaml": "the file's precision is auto", "ipex.yaml": "a section of old versions", "no_slurm.yaml": "-n or Slurm give it",
                "nulls.yaml": "a key without a value", "plain_no.yaml": "YAML reads the word as false", "slurm_fsdp.yaml": "-n or Slurm give it"}
OTHERWISE = {("fsdp1_config.yaml", "zero_stage"): "Accelerate 1.15 writes the strategy of version 1 where it does not read it"}


def settings_of(hortator, file):
    done = subprocess.run([hortator, "config", "validate", file, "--json"], capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    if not answer["is_valid"]:
        return {"error": answer["error"]}
    settings = {key: given["value"] for key, given in answer["settings"].items()}
    if settings.get("gradient_clipping") == "0":
        del settings["gradient_clipping"]
    return settings


def same(one, other):
    try:
        return float(one) == float(other)
    except (TypeError, ValueError):
        return str(one).lower() == str(other).lower()


def problems_of(name, theirs, ours):
    if "error" in theirs or "error" in ours:
        if "error" in ours and "error" not in theirs and name not in STRICTER:
            return [f"{name}: Accelerate reads it as {theirs}; Hortator: {ours['error']}"]
        if "error" in theirs and "error" not in ours and name not in MORE_LENIENT:
            return [f"{name}: Accelerate refuses it ({theirs['error']}); Hortator reads it as {ours}"]
        return []
    theirs = {key: value for key, value in theirs.items() if not (key == "mixed_precision" and value == "no" and key not in ours)}
    compared = [key for key in ours if key in COMPARED or key in theirs]
    return [f"{name}: {key} is {theirs.get(key)} in Accelerate, {ours.get(key)} in Hortator"
            for key in sorted(set(compared) | set(theirs)) if (name, key) not in OTHERWISE and not same(theirs.get(key), ours.get(key))]


COMPARED = {"ranks", "nodes", "zero_stage", "offload_optimizer", "offload_parameters", "recompute_layers", "gradient_accumulation_steps",
            "gradient_clipping", "replicate", "shard", "tensor", "context"}

problems = []
for path, found in results_of([os.path.abspath(file) for file in sys.argv[2:]]).items():
    problems += problems_of(os.path.basename(path), found, settings_of(sys.argv[1], path))
print("\n".join(problems) or f"{len(sys.argv) - 2} files give the same settings")
sys.exit(1 if problems else 0)
