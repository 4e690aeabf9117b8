#include "data/loader/batch_delivery.hpp"

#include <hortator/error.hpp>
#include <hortator/training/objects.hpp>

namespace hortator::data {
namespace {

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
