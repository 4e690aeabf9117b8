# libpng and libjpeg, for folders of images, TensorBoard images and charts. Without one of them, reading or writing such an
# image is an error at run time.
find_package(PNG 1.6)
find_package(JPEG)
add_library(hortator_images INTERFACE)
if(PNG_FOUND)
  target_link_libraries(hortator_images INTERFACE PNG::PNG)
endif()
if(JPEG_FOUND)
  target_link_libraries(hortator_images INTERFACE JPEG::JPEG)
endif()
add_feature_info(PNG PNG_FOUND "PNG images: ${PNG_VERSION_STRING}")
add_feature_info(JPEG JPEG_FOUND "JPEG images: ${JPEG_VERSION}")
