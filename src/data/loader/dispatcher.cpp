#include "data/loader/dispatcher.hpp"

#include <hortator/error.hpp>
#include <hortator/training/objects.hpp>

#include "mpi/collectives.hpp"
#include "runtime/identity/shared_name.hpp"

namespace hortator::data {
namespace {

struct Header {
  Dispatch::Kind kind;
  std::int64_t samples;
  std::uint64_t state_bytes;
  std::uint64_t content_bytes;
};

// The only rank of a node sends nothing.
std::size_t bytes_of_pipe(const mpi::Communicator& node) { return node.size() == 1 ? 0 : NodePipe::bytes; }

Dispatch packed(const Delivery& delivery, const BatchSource& source) {
  Dispatch dispatch{.samples = delivery.samples};
  if (delivery.batch) {
    dispatch.kind = Dispatch::Kind::batch;
    dispatch.content = source.encode(delivery.batch.get());
  }
  if (delivery.state) {
    ObjectWriter out;
    out.write_state(*delivery.state);
    dispatch.state = out.take();
  }
  return dispatch;
}

Delivery unpacked(const Dispatch& dispatch, const BatchSource& source) {
  if (dispatch.kind == Dispatch::Kind::problem) throw Error({.what = dispatch.content});
  Delivery delivery{.samples = dispatch.samples};
  if (dispatch.kind == Dispatch::Kind::batch) delivery.batch = source.decode(dispatch.content);
  if (!dispatch.state.empty()) {
    delivery.state = std::make_shared<const StateDict>(ObjectReader(dispatch.state).read_state());
  }
  return delivery;
}

/// Reads for all ranks of a node and sends them their batches.
class NodeReader {
 public:
  NodeReader(std::shared_ptr<StepReader> reader, const BatchSource& source, Dispatcher& dispatcher, std::uint64_t pass,
             bool is_sized)
      : reader_(std::move(reader)), source_(source), dispatcher_(dispatcher), pass_(pass), announces_(!is_sized) {}

  Delivery operator()(std::int64_t step) {
    std::vector<Delivery> deliveries;
    std::vector<Dispatch> others;
    try {
      deliveries = reader_->read(step, dispatcher_.ranks());
      // Encode all before sending any, so that an error reaches all ranks at the same step.
      for (std::size_t local = 1; local < deliveries.size(); ++local)
        others.push_back(packed(deliveries[local], source_));
    } catch (const std::exception& error) {
      const Dispatch problem{.kind = Dispatch::Kind::problem, .content = error.what()};
      for (std::size_t local = 1; local < dispatcher_.ranks().size(); ++local) dispatcher_.send(local, pass_, problem);
      throw;
    }
    for (std::size_t local = 1; local < deliveries.size(); ++local) {
      // A message without a batch is needed only to announce the end of a stream that has no batch at all.
      const auto& dispatch = others[local - 1];
      if (dispatch.kind == Dispatch::Kind::batch || announces_) dispatcher_.send(local, pass_, dispatch);
    }
    announces_ = false;
    return std::move(deliveries[0]);
  }

 private:
  std::shared_ptr<StepReader> reader_;
  const BatchSource& source_;
  Dispatcher& dispatcher_;
  std::uint64_t pass_;
  bool announces_;
};

}  // namespace

Dispatcher::Dispatcher(const mpi::Communicator& node, const mpi::Communicator& all, int rank)
    : node_(node.split(0, node.rank())),
      ranks_(mpi::all_gather(node_, rank)),
      memory_(node_, all, bytes_of_pipe(node_), runtime::shared_name("batches")),
      opened_(ranks_.size()) {}

NodePipe Dispatcher::pipe_to(std::size_t local) const { return NodePipe(memory_.part(static_cast<int>(local))); }

std::uint64_t Dispatcher::enter() {
  ++entered_;
  if (!reads()) pipe_to(static_cast<std::size_t>(node_.rank())).enter(entered_);
  return entered_;
}

void Dispatcher::leave(std::uint64_t pass) noexcept {
  left_ = pass;
  if (!reads()) return pipe_to(static_cast<std::size_t>(node_.rank())).leave(pass);
  for (std::size_t local = 1; local < ranks_.size(); ++local) pipe_to(local).close(pass);
}

void Dispatcher::throw_if_left(std::uint64_t pass) const {
  if (left_ >= pass)
    throw Error({.what = "This rank has left its loop over the loader",
                 .why = "it reads the batches of the other ranks of its node, which continue",
                 .hint = "leave the loop on all ranks at the same batch"});
}

void Dispatcher::send(std::size_t local, std::uint64_t pass, const Dispatch& dispatch) {
  auto pipe = pipe_to(local);
  const auto check = [&] { throw_if_left(pass); };
  if (opened_[local] != pass && !pipe.open(pass, check)) return;
  opened_[local] = pass;
  const Header header{.kind = dispatch.kind,
                      .samples = dispatch.samples,
                      .state_bytes = dispatch.state.size(),
                      .content_bytes = dispatch.content.size()};
  static_cast<void>(pipe.write(pass, &header, sizeof header, check) &&
                    pipe.write(pass, dispatch.state.data(), dispatch.state.size(), check) &&
                    pipe.write(pass, dispatch.content.data(), dispatch.content.size(), check));
}

Dispatch Dispatcher::receive(std::uint64_t pass) {
  auto pipe = pipe_to(static_cast<std::size_t>(node_.rank()));
  const auto check = [&] { throw_if_left(pass); };
  Header header{};
  pipe.read(pass, &header, sizeof header, check);
  Dispatch dispatch{.kind = header.kind, .samples = header.samples};
  dispatch.state.resize(header.state_bytes);
  dispatch.content.resize(header.content_bytes);
  pipe.read(pass, dispatch.state.data(), dispatch.state.size(), check);
  pipe.read(pass, dispatch.content.data(), dispatch.content.size(), check);
  return dispatch;
}

Deliver read_alone(std::shared_ptr<StepReader> reader, int rank) {
  return [reader = std::move(reader), rank](std::int64_t step) {
    return std::move(reader->read(step, {&rank, 1}).front());
  };
}

Deliver read_for_node(std::shared_ptr<StepReader> reader, const BatchSource& source, Dispatcher& dispatcher,
                      std::uint64_t pass, bool is_sized) {
  return NodeReader(std::move(reader), source, dispatcher, pass, is_sized);
}

Deliver receive(const BatchSource& source, Dispatcher& dispatcher, std::uint64_t pass) {
  return [&source, &dispatcher, pass](std::int64_t /*step*/) { return unpacked(dispatcher.receive(pass), source); };
}

}  // namespace hortator::data
