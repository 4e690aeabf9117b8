#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/ir/attributes.h>
#include <torch/torch.h>

#include <memory>
#include <string>

// LibTorch for clang's precompiled headers. Clang instantiates the functions in the vtables of a header's class
// templates at the end of every source that uses the header, even of an empty one, which takes 1.6 s with LibTorch's.
// Here they are used, and so instantiated, in the header itself.
namespace hortator::precompiled {

template <typename T>
T& some();  // not defined, since nothing here is ever called

template <typename T>
void use_type() {
  some<const T>().T::equals(some<const c10::Type>());
}

template <typename T>
void use_element_type() {
  use_type<T>();
  some<const T>().T::hasFreeVariables();
  some<const T>().T::containedTypes();
}

template <typename T>
void use_attribute() {
  some<const T>().T::kind();
  some<const T>().T::clone();
}

template <typename... Modules>
void use_modules() {
  const auto use = []<typename M, typename Base>(M*, Base*) {
    const auto clone = std::dynamic_pointer_cast<M>(some<const Base>().Base::clone());
    TORCH_CHECK(clone != nullptr, "");
    some<M>() = *clone;
  };
  (use(&some<Modules>(), &some<torch::nn::Cloneable<Modules>>()), ...);
}

template <typename Module, typename Base, typename... Middle>
void use_convolution() {
  use_modules<Module>();
  some<Base>().Base::reset();
  some<const Base>().Base::pretty_print(some<std::ostream>());
  (some<const Middle>().Middle::pretty_print(some<std::ostream>()), ...);
}

template <typename Options, typename State>
void use_optimizer() {
  const std::unique_ptr<torch::optim::OptimizerOptions> options = std::make_unique<Options>(some<const Options>());
  const std::unique_ptr<torch::optim::OptimizerParamState> state = std::make_unique<State>(some<const State>());
}

inline void use() {
  using c10::TypeKind;
  use_element_type<c10::SingleElementType<TypeKind::AwaitType, c10::AwaitType>>();
  use_element_type<c10::SingleElementType<TypeKind::FutureType, c10::FutureType>>();
  use_element_type<c10::SingleElementType<TypeKind::ListType, c10::ListType>>();
  use_element_type<c10::SingleElementType<TypeKind::RRefType, c10::RRefType>>();
  use_type<c10::EnumerationType<TypeKind::LayoutType>>();
  use_type<c10::EnumerationType<TypeKind::MemoryFormatType>>();
  use_type<c10::EnumerationType<TypeKind::ScalarTypeType>>();

  using torch::jit::AttributeKind;
  using torch::jit::ScalarAttributeValue;
  using torch::jit::VectorAttributeValue;
  use_attribute<ScalarAttributeValue<c10::complex<double>, AttributeKind::c>>();
  use_attribute<ScalarAttributeValue<double, AttributeKind::f>>();
  use_attribute<ScalarAttributeValue<std::int64_t, AttributeKind::i>>();
  use_attribute<ScalarAttributeValue<std::string, AttributeKind::s>>();
  use_attribute<VectorAttributeValue<c10::complex<double>, AttributeKind::cs>>();
  use_attribute<VectorAttributeValue<double, AttributeKind::fs>>();
  use_attribute<VectorAttributeValue<std::int64_t, AttributeKind::is>>();
  use_attribute<VectorAttributeValue<std::string, AttributeKind::ss>>();
  use_attribute<VectorAttributeValue<at::Tensor, AttributeKind::ts>>();
  use_attribute<VectorAttributeValue<c10::TypePtr, AttributeKind::tys>>();

  using namespace torch::nn;
  use_modules<AdaptiveLogSoftmaxWithLossImpl, BilinearImpl, CrossMapLRN2dImpl, EmbeddingBagImpl, EmbeddingImpl,
              FoldImpl, FractionalMaxPool2dImpl, FractionalMaxPool3dImpl, GRUCellImpl, GRUImpl, GroupNormImpl,
              LSTMCellImpl, LSTMImpl, LayerNormImpl, LinearImpl, LocalResponseNormImpl, LogSoftmaxImpl, ModuleDictImpl,
              MultiheadAttentionImpl, ParameterDictImpl, RNNCellImpl, RNNImpl, SequentialImpl, SoftmaxImpl, SoftminImpl,
              ThresholdImpl, TransformerDecoderImpl, TransformerDecoderLayerImpl, TransformerEncoderImpl,
              TransformerEncoderLayerImpl, UnflattenImpl, UnfoldImpl>();
  use_convolution<Conv1dImpl, ConvNdImpl<1, Conv1dImpl>>();
  use_convolution<Conv2dImpl, ConvNdImpl<2, Conv2dImpl>>();
  use_convolution<Conv3dImpl, ConvNdImpl<3, Conv3dImpl>>();
  use_convolution<ConvTranspose1dImpl, ConvNdImpl<1, ConvTranspose1dImpl>,
                  ConvTransposeNdImpl<1, ConvTranspose1dImpl>>();
  use_convolution<ConvTranspose2dImpl, ConvNdImpl<2, ConvTranspose2dImpl>,
                  ConvTransposeNdImpl<2, ConvTranspose2dImpl>>();
  use_convolution<ConvTranspose3dImpl, ConvNdImpl<3, ConvTranspose3dImpl>,
                  ConvTransposeNdImpl<3, ConvTranspose3dImpl>>();

  using namespace torch::optim;
  use_optimizer<AdagradOptions, AdagradParamState>();
  use_optimizer<AdamOptions, AdamParamState>();
  use_optimizer<AdamWOptions, AdamWParamState>();
  use_optimizer<LBFGSOptions, LBFGSParamState>();
  use_optimizer<RMSpropOptions, RMSpropParamState>();
  use_optimizer<SGDOptions, SGDParamState>();

  using namespace torch::data;
  some<datasets::Dataset<datasets::MNIST>>().datasets::Dataset<datasets::MNIST>::get_batch({});
  using Tensors = datasets::Dataset<datasets::TensorDataset, TensorExample>;
  some<Tensors>().Tensors::get_batch({});
}

}  // namespace hortator::precompiled
