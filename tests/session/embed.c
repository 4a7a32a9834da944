/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is opened: nothing is traced, and functions of the driver are the driver's own, if there
 * is one. */
#include <iket/embed.h>
#include <string.h>

int main(void) {
  iket_embed_options options;
  size_t bytes = 1;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.library = "no/such/library.so";
  if (iket_embed_open(&options) == NULL || iket_embed_library != NULL) return 1;
  if (iket_embed_write("no.iketcap") == NULL) return 2;
  if (iket_embed_patch("image") != NULL) return 3;
  if (iket_embed_image_data(NULL, &bytes) != NULL) return 4;
  if (iket_embed_bind(NULL, NULL) == NULL) return 5;
  if (iket_embed_launching(NULL, NULL) != CUDA_SUCCESS) return 6;
  if (iket_embed_function("cuNoSuchFunction") != NULL) return 7;
  iket_embed_unbind(NULL);
  iket_embed_release(NULL);
  return 0;
}
