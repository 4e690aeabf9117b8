#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/InferenceMode.h>

#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "observe/operators/fingerprint.hpp"
#include "tools/doctor/bits.hpp"
#include "tools/launch/machine.hpp"

namespace hortator::tools::doctor {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Multiples of 1/64 below 1, which both types have exactly: no input is rounded.
at::Tensor numbers(const Sizes& sizes, std::int64_t seed, at::ScalarType type) {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return (((at::arange(count, at::kLong) * 37 + seed * 11) % 61 - 30).to(at::kFloat) / 64).to(type).view(sizes);
}

struct Kernel {
  const char* name;
  std::function<at::Tensor(at::ScalarType type)> compute;
};

/// A kernel of one tensor, with sizes that no vector length divides.
Kernel elementwise(const char* name, at::Tensor (*compute)(const at::Tensor&)) {
  return {name, [compute](at::ScalarType type) { return compute(numbers({37, 129}, 1, type) * 4); }};
}

std::vector<Kernel> products() {
  return {{"product",
           [](auto type) {
             return at::mm(numbers({67, 259}, 1, type), numbers({259, 131}, 2, type));
           }},
          {"vector product",
           [](auto type) {
             return at::mv(numbers({131, 259}, 1, type), numbers({259}, 2, type));
           }},
          {"batched product",
           [](auto type) {
             return at::bmm(numbers({5, 33, 70}, 1, type), numbers({5, 70, 41}, 2, type));
           }},
          {"linear layer",
           [](auto type) {
             return at::linear(numbers({19, 259}, 1, type), numbers({67, 259}, 2, type), numbers({67}, 3, type));
           }},
          {"convolution",
           [](auto type) {
             return at::conv2d(numbers({2, 7, 19, 23}, 1, type), numbers({11, 7, 3, 3}, 2, type));
           }},
          {"attention", [](auto type) {
             const auto q = numbers({2, 3, 37, 32}, 1, type), k = numbers({2, 3, 37, 32}, 2, type);
             return at::scaled_dot_product_attention(q, k, numbers({2, 3, 37, 32}, 3, type), {}, 0, /*is_causal=*/true);
           }}};
}

std::vector<Kernel> reductions() {
  return {
      {"sum", [](auto type) { return at::sum(numbers({10007}, 1, type)); }},
      {"sums of rows",
       [](auto type) {
         return at::sum(numbers({37, 1031}, 1, type), 1);
       }},
      {"sums of columns",
       [](auto type) {
         return at::sum(numbers({1031, 37}, 1, type), 0);
       }},
      {"running sum", [](auto type) { return at::cumsum(numbers({1031}, 1, type), 0); }},
      {"norm", [](auto type) { return at::linalg_vector_norm(numbers({10007}, 1, type)); }},
      {"variance",
       [](auto type) {
         return at::var(numbers({37, 1031}, 1, type), at::IntArrayRef{1});
       }},
      {"softmax",
       [](auto type) {
         return at::softmax(numbers({37, 131}, 1, type) * 8, -1);
       }},
      {"logarithmic softmax",
       [](auto type) {
         return at::log_softmax(numbers({37, 131}, 1, type) * 8, -1);
       }},
      {"layer norm",
       [](auto type) {
         return at::layer_norm(numbers({37, 131}, 1, type), {131}, numbers({131}, 2, type), numbers({131}, 3, type));
       }},
      {"batch norm", [](auto type) {
         return at::batch_norm(numbers({9, 7, 23}, 1, type), numbers({7}, 2, type), numbers({7}, 3, type), {}, {},
                               /*training=*/true, 0.1, 1e-5, /*cudnn_enabled=*/false);
       }}};
}

std::vector<Kernel> functions() {
  return {elementwise("exp", at::exp),
          elementwise("tanh", at::tanh),
          elementwise("sigmoid", at::sigmoid),
          elementwise("gelu", [](const at::Tensor& x) { return at::gelu(x); }),
          elementwise("silu", at::silu),
          elementwise("sine", at::sin),
          elementwise("logarithm", [](const at::Tensor& x) { return at::log(x.abs() + 1); }),
          elementwise("square root", [](const at::Tensor& x) { return at::sqrt(x.abs()); })};
}

KernelBits bits_of(const Kernel& kernel, at::ScalarType type) {
  KernelBits one{.kernel = text::concat(kernel.name, type == at::kFloat ? " float32" : " bfloat16"), .bits = ""};
  try {
    const auto result = observe::brief_fingerprint(kernel.compute(type));
    one.bits = text::print("%016llx", static_cast<unsigned long long>(result.bits));
  } catch (const std::exception& error) {
    one.bits = text::concat("error: ", text::first_line(error.what()));
  }
  return one;
}

/// How many threads share a kernel decides how sums are divided.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = at::get_num_threads();
};

std::string encode(const RankBits& rank) {
  auto kernels = nlohmann::json::array();
  for (const auto& one : rank.kernels) kernels.push_back({one.kernel, one.bits});
  const nlohmann::json json = {{"host", rank.host}, {"processor", rank.processor}, {"kernels", kernels}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

RankBits decode_rank(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  RankBits rank{.host = json["host"], .processor = json["processor"]};
  for (const auto& one : json["kernels"]) rank.kernels.push_back({.kernel = one[0], .bits = one[1]});
  return rank;
}

}  // namespace

std::vector<KernelBits> probe_kernels() {
  const OneThread one_thread;
  const c10::InferenceMode without_history;
  std::vector<KernelBits> all;
  for (const auto& group : {products(), reductions(), functions()}) {
    for (const auto& kernel : group)
      for (const auto type : {at::kFloat, at::kBFloat16}) all.push_back(bits_of(kernel, type));
  }
  return all;
}

std::string processor_features() {
  std::vector<std::string> found;
#ifdef __x86_64__
  const auto add = [&](const char* name, bool has) {
    if (has) found.emplace_back(name);
  };
  add("AVX2", __builtin_cpu_supports("avx2") != 0);
  add("FMA", __builtin_cpu_supports("fma") != 0);
  add("AVX512F", __builtin_cpu_supports("avx512f") != 0);
  add("AVX512_VNNI", __builtin_cpu_supports("avx512vnni") != 0);
  add("AVX512_BF16", __builtin_cpu_supports("avx512bf16") != 0);
#endif
  const auto model = cpu_model();
  return text::concat(model.empty() ? "unknown processor" : model, found.empty() ? "" : ": ", text::join(found, " "),
                      "; LibTorch uses ", at::get_cpu_capability());
}

BitsFacts inspect_bits(const mpi::Communicator& comm) {
  const RankBits mine{.host = mpi::host_name(), .processor = processor_features(), .kernels = probe_kernels()};
  BitsFacts facts;
  for (const auto& of_rank : mpi::gather(comm, encode(mine))) facts.ranks.push_back(decode_rank(of_rank));
  return facts;
}

}  // namespace hortator::tools::doctor
