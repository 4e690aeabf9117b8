#pragma once

#include <torch/data/example.h>

#include <c10/core/Device.h>

#include <hortator/detail/batch_source.hpp>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Moves a batch to a device: tensors, and what standard containers and examples hold of them. Other types stay as they
/// are.
namespace hortator::detail {

template <typename T>
struct Place {
  static void to(T& /*batch*/, c10::Device /*device*/) {}
};

template <typename T>
void place(T& batch, c10::Device device) {
  Place<T>::to(batch, device);
}

template <>
struct Place<at::Tensor> {
  static void to(at::Tensor& tensor, c10::Device device) { tensor = data::to_device(tensor, device); }
};

template <typename Data, typename Target>
struct Place<torch::data::Example<Data, Target>> {
  static void to(torch::data::Example<Data, Target>& example, c10::Device device) {
    place(example.data, device);
    if constexpr (!std::is_void_v<Target>) place(example.target, device);
  }
};

template <typename T>
struct Place<std::vector<T>> {
  static void to(std::vector<T>& parts, c10::Device device) {
    for (auto& part : parts) place(part, device);
  }
};
template <>
struct Place<std::vector<bool>> {  // its elements are no objects
  static void to(std::vector<bool>& /*batch*/, c10::Device /*device*/) {}
};

template <typename T>
struct Place<std::map<std::string, T>> {
  static void to(std::map<std::string, T>& parts, c10::Device device) {
    for (auto& [name, part] : parts) place(part, device);
  }
};

template <typename... Parts>
struct Place<std::tuple<Parts...>> {
  static void to(std::tuple<Parts...>& parts, c10::Device device) {
    std::apply([&](Parts&... part) { (place(part, device), ...); }, parts);
  }
};

template <typename First, typename Second>
struct Place<std::pair<First, Second>> {
  static void to(std::pair<First, Second>& pair, c10::Device device) {
    place(pair.first, device);
    place(pair.second, device);
  }
};

}  // namespace hortator::detail
