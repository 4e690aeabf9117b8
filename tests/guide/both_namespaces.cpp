// A user's file that names neither namespace: what users write of the library is nothing else in LibTorch or in the
// standard library. What such a file cannot have itself, in no namespace, are functions and variables called as the
// library's inner namespaces: accelerator, data, detail, io, runtime, track, train.
#include <torch/torch.h>

#include <hortator/hortator.hpp>

using namespace hortator;
using namespace torch;
using namespace std;

namespace {

struct NetImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    return recompute([this](const Tensor& y) { return layer(y); }, x);
  }
  nn::Linear layer = register_module("layer", nn::Linear(4, 2));
};
TORCH_MODULE(Net);

struct Digits {
  int64_t size() const { return 10; }
  Example<> get(int64_t) const { return {torch::zeros({4}), torch::zeros({}, kLong)}; }
};

void learn() {
  AcceleratorOptions options{.mixed_precision = Precision::bf16,
                             .data = DataOptions{.even_batches = true},
                             .ddp = DistributedDataParallelOptions{.comm_hook = DDPCommunicationHookType::bf16},
                             .zero = ZeroConfig{.stage = 1},
                             .schedule_step = ScheduleStep::per_update,
                             .project = ProjectOptions{.dir = "runs/names"},
                             .checkpoint = CheckpointOptions{.writer = CheckpointWriter::direct}};
  Accelerator accelerator(options);
  set_seed(1);
  Net net;
  optim::AdamW adamw(net->parameters());
  auto prepared = accelerator.prepare(net, adamw, data_loader(Digits(), LoaderOptions{.order = ShuffleOrder::counter}),
                                      linear_warmup(adamw, LinearWarmup{.warmup_steps = 1, .total_steps = 2}));
  Model<Net>& model = get<0>(prepared);
  Optimizer& optimizer = get<1>(prepared);
  DataLoader<Example<>>& loader = get<2>(prepared);
  Schedule& schedule = get<3>(prepared);
  for (auto& batch : accelerator.progress(skip_first_batches(loader, 1), "names")) {
    MicroStep micro_step = accelerator.accumulate(model);
    Tensor loss = nn::functional::cross_entropy(model(batch.data), batch.target);
    accelerator.backward(loss);
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();
    loss = accelerator.reduce(loss, Reduce::mean);
  }
  LocalSGD local_sgd(accelerator, model, LocalSGDOptions{.steps = 2});
  StateDict weights = accelerator.get_state_dict(model);
  weights.contains("layer.weight");
}

void compute() {
  State state;
  if (state.distributed_type() == DistributedType::no) state.print("alone");
  Logger logger = get_logger(state, "names", LogLevel::info);
  DeviceMap map = {{"", Place::disk()}};
  MaxMemory memory = {{Place::cpu(), Bytes(1e9)}};
  auto sampler = weighted_sampler({0.5, 0.5}, WeightedOptions{.replacement = true});
  auto some = subset(Digits(), {1, 2});
  auto deferred = construct_deferred([] { return Net(); });
  auto empty = init_empty_weights([] { return Net(); });
  SyncBatchNorm2d norm(nn::BatchNormOptions(4));
  Offload offload = disk_offload(deferred, ".", DiskOffloadOptions{.resident_bytes = 1});
  try {
    throw UsageError(Problem{.what = "nothing"});
  } catch (const UsageError& error) {
    logger.error(error.what());
  }
}

}  // namespace

// Compiled, never run.
int names(int argc, char** argv) {
  return run(argc, argv, [] {
    learn();
    compute();
  });
}
