#include "layers/image.h"
