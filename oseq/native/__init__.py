"""Operations in C++, for what TensorFlow's own are slow at on CPUs."""
