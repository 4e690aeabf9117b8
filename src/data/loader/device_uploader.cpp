#include "data/loader/device_uploader.hpp"

#include <c10/core/StreamGuard.h>

namespace hortator::data {

DeviceUploader::DeviceUploader(c10::Device device)
    : device_(device.type()), stream_(device_.getStreamFromGlobalPool(device, /*isHighPriority=*/false)) {}

// The page-locked copies may be freed at once: their allocator waits for the stream that reads them.
c10::Event DeviceUploader::upload(void* batch, const BatchSource& source) const {
  const c10::StreamGuard guard(stream_);
  source.change(batch, [this](const at::Tensor& tensor) {
    return placed(pinned(tensor), {.device = stream_.device(), .non_blocking = true});
  });
  c10::Event arrival(stream_.device_type());
  arrival.record(stream_);
  return arrival;
}

void DeviceUploader::hand_over(void* batch, const BatchSource& source, const c10::Event& arrival) const {
  const auto user = device_.getStream(stream_.device());
  arrival.block(user);
  source.change(batch, [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.has_storage() && tensor.device() == user.device())
      device_.recordDataPtrOnStream(tensor.storage().data_ptr(), user);
    return tensor;
  });
}

}  // namespace hortator::data
