# ICU, for tokenizers. In a build without it, making a tokenizer is an error at run time.
find_package(ICU 60 COMPONENTS i18n uc)
add_library(hortator_unicode INTERFACE)
if(ICU_FOUND)
  target_link_libraries(hortator_unicode INTERFACE ICU::i18n ICU::uc)
endif()
add_feature_info(ICU ICU_FOUND "tokenizers: ${ICU_VERSION}")
