#include <ATen/DLConvertor.h>
#include <ATen/dlpack.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <hortator/error.hpp>
#include <hortator/interop/dlpack.hpp>
#include <vector>

#include "core/text/text.hpp"

namespace hortator {
namespace {

at::ScalarType type_of(const DLDataType& type) {
  try {
    return at::toScalarType(type);
  } catch (const c10::Error& error) {
    throw UsageError({.what = text::concat("A DLPack tensor has the type code ", static_cast<int>(type.code), " with ",
                                           static_cast<int>(type.bits), " bits and ", type.lanes, " lanes"),
                      .why = "LibTorch has no such type",
                      .hint = "convert it in the other library first"});
  }
}

at::Device device_of(const DLTensor& tensor, void* data) {
  try {
    return at::dlDeviceToTorchDevice(tensor.device.device_type, static_cast<c10::DeviceIndex>(tensor.device.device_id),
                                     data);
  } catch (const c10::Error& error) {
    throw UsageError({.what = text::concat("A DLPack tensor is on a device of the type ",
                                           static_cast<int>(tensor.device.device_type)),
                      .why = "this LibTorch has no such device",
                      .hint = "move it to the host in the other library first"});
  }
}

void require_valid(const DLTensor& tensor) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr))
    throw UsageError({.what = text::concat("A DLPack tensor has ", tensor.ndim, " dimensions without a shape")});
  for (int i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] >= 0 && (tensor.strides == nullptr || tensor.strides[i] >= 0)) continue;
    throw UsageError({.what = text::concat("Dimension ", i, " of a DLPack tensor has the size ", tensor.shape[i],
                                           tensor.strides == nullptr ? "" : " and the stride ",
                                           tensor.strides == nullptr ? "" : std::to_string(tensor.strides[i])),
                      .why = "LibTorch has no negative sizes and strides",
                      .hint = "copy it in the other library first"});
  }
}

/// Owns the struct from its return on.
template <typename Managed>
at::Tensor shared(Managed* managed) {
  const auto& tensor = managed->dl_tensor;
  require_valid(tensor);
  auto* data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  const auto device = device_of(tensor, data);
  const auto options = at::TensorOptions().dtype(type_of(tensor.dtype)).device(device);
  const at::IntArrayRef shape(tensor.shape, static_cast<std::size_t>(tensor.ndim));
  at::OptionalIntArrayRef strides;
  if (tensor.strides != nullptr) strides = at::IntArrayRef(tensor.strides, static_cast<std::size_t>(tensor.ndim));
  const auto release = [managed](void*) {
    if (managed->deleter != nullptr) managed->deleter(managed);
  };
  return at::for_blob(data, shape)
      .strides(strides)
      .deleter(release)
      .options(options)
      .target_device(device)
      .make_tensor();
}

template <typename Managed>
Managed* required(Managed* managed) {
  if (managed != nullptr) return managed;
  throw UsageError({.what = "from_dlpack got NULL", .hint = "pass the struct of the other library"});
}

const at::Tensor& exportable(const at::Tensor& tensor) {
  const auto refuse = [](const char* what, const char* hint) {
    throw UsageError({.what = what, .why = "DLPack describes memory with strides only", .hint = hint});
  };
  if (!tensor.defined()) refuse("to_dlpack got an undefined tensor", "pass a tensor with memory");
  if (tensor.requires_grad()) refuse("to_dlpack got a tensor with gradients", "pass tensor.detach()");
  if (tensor.layout() != at::kStrided) refuse("to_dlpack got a sparse tensor", "pass tensor.to_dense()");
  if (tensor.is_quantized()) refuse("to_dlpack got a quantised tensor", "pass tensor.dequantize()");
  if (tensor.is_conj() || tensor.is_neg())
    refuse("to_dlpack got a tensor whose conjugate is not computed yet", "pass tensor.resolve_conj().resolve_neg()");
  return tensor;
}

}  // namespace

at::Tensor from_dlpack(DLManagedTensor* tensor) { return shared(required(tensor)); }

at::Tensor from_dlpack(DLManagedTensorVersioned* tensor) {
  const auto major = required(tensor)->version.major;
  if (major == DLPACK_MAJOR_VERSION) return shared(tensor);
  throw UsageError({.what = text::concat("A DLPack tensor has the major version ", major),
                    .why = text::concat("this LibTorch has version ", DLPACK_MAJOR_VERSION),
                    .hint = "use a release of the other library with the same major version of DLPack"});
}

DLManagedTensor* to_dlpack(const at::Tensor& tensor) { return at::toDLPack(exportable(tensor)); }

DLManagedTensorVersioned* to_dlpack_versioned(const at::Tensor& tensor) {
  return at::toDLPackVersioned(exportable(tensor));
}

}  // namespace hortator
