export function deadLettersView({main}) { main.append('x'); return {close() {}}; }
