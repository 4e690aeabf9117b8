# libpng and libjpeg, for folders of images, TensorBoard images and charts. A build without one of them throws when such an
# image is read or written.
find_package(PNG 1.6)
find_package(JPEG)
add_library(hortator_images INTERFACE)
if(PNG_FOUND)
  target_link_libraries(hortator_images INTERFACE PNG::PNG)
endif()
if(JPEG_FOUND)
  target_link_libraries(hortator_images INTERFACE JPEG::JPEG)
endif()
add_feature_info(PNG PNG_FOUND "images in PNG files: ${PNG_VERSION_STRING}")
add_feature_info(JPEG JPEG_FOUND "images in JPEG files: ${JPEG_VERSION}")
