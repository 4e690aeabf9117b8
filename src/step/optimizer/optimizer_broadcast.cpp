#include "step/optimizer/optimizer_broadcast.hpp"

#include <torch/serialize.h>

#include <string>

#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::step {
namespace {

std::string to_bytes(const StateDict& state) {
  c10::impl::GenericDict values(c10::StringType::get(), c10::AnyType::get());
  for (const auto& [name, value] : state.values())
    std::visit([&, &name = name](const auto& held) { values.insert(name, held); }, value);
  const auto pickled = torch::pickle_save(values);
  return {pickled.begin(), pickled.end()};
}

StateDict from_bytes(const std::string& bytes) {
  StateDict state;
  const auto values = torch::pickle_load({bytes.begin(), bytes.end()}).toGenericDict();
  for (const auto& item : values) {
    const auto& name = item.key().toStringRef();
    const auto& value = item.value();
    if (value.isTensor()) {
      state.put(name, value.toTensor());
    } else if (value.isDouble()) {
      state.put(name, value.toDouble());
    } else if (value.isInt()) {
      state.put(name, value.toInt());
    } else {
      state.put(name, value.toStringRef());
    }
  }
  return state;
}

}  // namespace

void broadcast_optimizer(torch::optim::Optimizer& optimizer, const ParameterNames& names, const mpi::Communicator& host,
                         int root) {
  std::string bytes;
  mpi::all_or_none(host, [&] {
    if (host.rank() == root) bytes = to_bytes(save_optimizer(optimizer, names));
  });
  bytes = mpi::broadcast(host, std::string_view(bytes), root);
  mpi::all_or_none(host, [&] {
    if (host.rank() != root) load_optimizer(optimizer, names, from_bytes(bytes));
  });
}

}  // namespace hortator::step
